//! Opens a trace file or standard input and decompresses its bytes. The name does not matter:
//! gzip and zstd are recognised by their first bytes.
//!
//! An input that can be opened only once (standard input, a pipe) is copied to an unnamed
//! temporary file as long as a second reading may be needed.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::GzDecoder;

use crate::error::HostError;
use crate::progress::Progress;

/// Bytes read from the system at once.
const READ_BYTES: usize = 256 << 10;

/// Bytes of the longest signature that is looked for.
const MAGIC_BYTES: usize = 4;

prism_base::named_enum! {
    /// How a file is compressed.
    enum Codec {
        Plain = "plain",
        Gzip = "gzip",
        Zstd = "zstd",
    }
}

impl Codec {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // A zstd file may begin with a skippable frame.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// One open file, decompressed while it is read.
pub struct Input {
    name: String,
    codec: Codec,
    /// Bytes of the (compressed) file that were read so far.
    taken: Rc<Cell<u64>>,
    size: Option<u64>,
    again: Again,
    bytes: Box<dyn Read>,
    /// An error that occurred after some bytes of the same call.
    pending: Option<io::Error>,
}

/// How to read the same bytes a second time.
enum Again {
    Path(PathBuf),
    Copy(KeptCopy),
}

/// The copy of an input that can be read only once; `None` when it is no longer needed.
type KeptCopy = Rc<RefCell<Option<File>>>;

/// The whole of a small text file, such as a device or a map.
///
/// # Errors
/// [`HostError::Open`] naming the file.
pub fn read_text(path: &Path) -> Result<String, HostError> {
    std::fs::read_to_string(path)
        .map_err(|source| HostError::Open { file: path.display().to_string(), source })
}

/// As [`read_text`]; `-` is standard input.
///
/// # Errors
/// [`HostError::Open`] naming the file.
pub fn read_text_or_stdin(path: &Path) -> Result<String, HostError> {
    if path != Path::new("-") {
        return read_text(path);
    }
    io::read_to_string(io::stdin())
        .map_err(|source| HostError::Open { file: "standard input".into(), source })
}

/// Passes the bytes of a file to `take`, some at a time, and whether they are the last, with
/// progress. `take` returns how many whole lines or records it has read so far.
///
/// # Errors
/// [`HostError`] if the file cannot be read; [`HostError::Content`] with the text of `take`.
pub fn pieces(
    path: &Path,
    progress: &Progress,
    mut take: impl FnMut(&[u8], bool) -> Result<u64, String>,
) -> Result<(), HostError> {
    let mut input = Input::open(path)?;
    progress.start_bytes("reading:", input.size());
    let (mut buffer, mut count) = (vec![0; PIECE_BYTES], 0);
    loop {
        let bytes = input.read_full(&mut buffer).map_err(|error| input.explain(error, count))?;
        count = take(&buffer[..bytes], bytes == 0).map_err(|what| {
            // What is unpacked from damaged data is nonsense; the checksum is behind it.
            input.damage(count).unwrap_or_else(|| HostError::content(input.name(), what))
        })?;
        progress.reached(input.taken());
        if bytes == 0 {
            progress.clear();
            return Ok(());
        }
    }
}

/// Bytes that [`pieces`] passes at once.
const PIECE_BYTES: usize = 1 << 20;

impl Input {
    /// Opens `path`, or standard input for `-`.
    ///
    /// # Errors
    /// [`HostError`] if there is no such file, no permission, a folder, or no byte.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        if path == Path::new("-") {
            return Self::once("standard input".into(), Box::new(io::stdin()));
        }
        let name = path.display().to_string();
        let file =
            File::open(path).map_err(|source| HostError::Open { file: name.clone(), source })?;
        let meta =
            file.metadata().map_err(|source| HostError::Open { file: name.clone(), source })?;
        if meta.is_dir() {
            return Err(HostError::Directory { file: name });
        }
        if !meta.is_file() {
            return Self::once(name, Box::new(file));
        }
        let again = Again::Path(path.to_path_buf());
        Self::unpack(name, Box::new(file), Some(meta.len()), again)
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the (compressed) file that were read so far, for progress.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// The size of the (compressed) file, if it has one.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Fills `buffer`; returns fewer bytes than its length only at the end of the input.
    ///
    /// # Errors
    /// The error of the system or of the decompressor; [`Input::explain`] turns it into a
    /// message.
    pub fn read_full(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        let mut filled = 0;
        while filled < buffer.len() {
            match self.bytes.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if filled == 0 => return Err(error),
                // The bytes before the damage are returned first.
                Err(error) => {
                    self.pending = Some(error);
                    break;
                }
            }
        }
        Ok(filled)
    }

    /// Leaves out the first `count` unpacked bytes, before any is read; an uncompressed file is not
    /// read for it. Returns how many there were, fewer only if the input is shorter.
    ///
    /// # Errors
    /// As [`Input::read_full`].
    pub fn skip(&mut self, count: u64) -> io::Result<u64> {
        if let (Codec::Plain, Again::Path(path), Some(size)) = (self.codec, &self.again, self.size)
        {
            let mut file = File::open(path)?;
            let there = count.min(size);
            file.seek(io::SeekFrom::Start(there))?;
            self.taken.set(there);
            let inner = BufReader::with_capacity(READ_BYTES, file);
            self.bytes = Box::new(Counted { inner, taken: Rc::clone(&self.taken) });
            return Ok(there);
        }
        let (mut buffer, mut skipped) = (vec![0; READ_BYTES], 0);
        while skipped < count {
            let wanted = (count - skipped).min(READ_BYTES as u64) as usize;
            let read = self.read_full(&mut buffer[..wanted])?;
            skipped += read as u64;
            if read < wanted {
                break;
            }
        }
        Ok(skipped)
    }

    /// The damage of compressed data that is found when more of it is read: a moment's work, since
    /// the input may have no end.
    fn damage(&mut self, lines: u64) -> Option<HostError> {
        const MORE: usize = 64 << 20;
        if self.codec == Codec::Plain {
            return None;
        }
        let mut buffer = vec![0; READ_BYTES];
        for _ in 0..MORE / READ_BYTES {
            match self.read_full(&mut buffer) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(self.explain(error, lines)),
            }
        }
        None
    }

    /// The error of a read, after `lines` whole lines or records.
    #[must_use]
    pub fn explain(&self, error: io::Error, lines: u64) -> HostError {
        let file = self.name.clone();
        let (byte, codec) = (self.taken.get(), self.codec.name());
        if self.codec == Codec::Plain || error.raw_os_error().is_some() {
            HostError::Read { file, byte, source: error }
        } else if error.get_ref().is_some_and(|error| error.is::<Trailing>()) {
            HostError::Trailing { file, codec, byte, lines }
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            HostError::Truncated { file, codec, byte, lines }
        } else {
            HostError::Damaged { file, codec, byte, lines, detail: error.to_string() }
        }
    }

    /// Ends the copying: no second reading will be needed.
    pub fn read_once(&mut self) {
        if let Again::Copy(copy) = &self.again {
            copy.replace(None);
        }
    }

    /// The same input from its beginning.
    ///
    /// # Errors
    /// [`HostError`] if the file is gone, or the copy cannot be read.
    ///
    /// # Panics
    /// If [`Input::read_once`] was called and the input is not a file.
    pub fn reopen(self) -> Result<Self, HostError> {
        match self.again {
            Again::Path(path) => Self::open(&path),
            Again::Copy(copy) => {
                let mut file = copy.take().expect("the copy is kept until read_once");
                file.rewind().map_err(HostError::Temporary)?;
                let size = file.metadata().map_err(HostError::Temporary)?.len();
                Self::unpack(self.name, Box::new(file), Some(size), Again::Copy(Rc::default()))
            }
        }
    }

    /// The rest of the input as a file, for a format that must be read from its end: an unnamed
    /// temporary file if the input is not an uncompressed file.
    ///
    /// # Errors
    /// [`HostError`] if it cannot be decompressed or copied.
    pub fn into_file(mut self) -> Result<File, HostError> {
        let failed = |source| HostError::Open { file: self.name.clone(), source };
        if let (Codec::Plain, Again::Path(path)) = (self.codec, &self.again) {
            return File::open(path).map_err(failed);
        }
        self.read_once();
        let mut file = tempfile::tempfile().map_err(HostError::Temporary)?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let filled = self.read_full(&mut buffer).map_err(|e| self.explain(e, 0))?;
            if filled == 0 {
                break;
            }
            file.write_all(&buffer[..filled]).map_err(HostError::Temporary)?;
        }
        file.rewind().map_err(HostError::Temporary)?;
        Ok(file)
    }

    fn once(name: String, bytes: Box<dyn Read>) -> Result<Self, HostError> {
        let file = tempfile::tempfile().map_err(HostError::Temporary)?;
        let copy = Rc::new(RefCell::new(Some(file)));
        let tee = Tee { bytes, copy: Rc::clone(&copy) };
        Self::unpack(name, Box::new(tee), None, Again::Copy(copy))
    }

    fn unpack(
        name: String,
        mut raw: Box<dyn Read>,
        size: Option<u64>,
        again: Again,
    ) -> Result<Self, HostError> {
        let taken = Rc::new(Cell::new(0));
        let mut head = Vec::new();
        let read = raw.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut head);
        if let Err(source) = read {
            return Err(HostError::Read { file: name, byte: 0, source });
        }
        if head.is_empty() {
            return Err(HostError::Empty { file: name });
        }
        let codec = Codec::of(&head);
        let whole = Cursor::new(head).chain(raw);
        let counted = Counted {
            inner: BufReader::with_capacity(READ_BYTES, whole),
            taken: Rc::clone(&taken),
        };
        let bytes: Box<dyn Read> = match codec {
            Codec::Plain => Box::new(counted),
            Codec::Gzip => Box::new(Members(Some(GzDecoder::new(counted)))),
            Codec::Zstd => match zstd::stream::read::Decoder::with_buffer(counted) {
                Ok(decoder) => Box::new(decoder),
                Err(source) => return Err(HostError::Open { file: name, source }),
            },
        };
        Ok(Self { name, codec, taken, size, again, bytes, pending: None })
    }
}

/// Unpacks the members of a gzip file, one after another. Unlike flate2's own decoder of several,
/// it distinguishes a member that is cut off from other bytes after the last one.
struct Members<R>(Option<GzDecoder<R>>);

/// Bytes that are no member follow the last one.
#[derive(Debug, thiserror::Error)]
#[error("bytes that are no gzip data follow it")]
struct Trailing;

/// The first byte of each member.
const MEMBER: u8 = 0x1f;

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.0 {
            let n = decoder.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            match decoder.get_mut().fill_buf()?.first() {
                None => self.0 = None,
                Some(&MEMBER) => {
                    self.0 = self.0.take().map(|ended| GzDecoder::new(ended.into_inner()));
                }
                Some(_) => return Err(io::Error::other(Trailing)),
            }
        }
        Ok(0)
    }
}

/// Copies the bytes that are read to a temporary file, as long as there is one.
struct Tee {
    bytes: Box<dyn Read>,
    copy: KeptCopy,
}

impl Read for Tee {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.read(buffer)?;
        if let Some(file) = self.copy.borrow_mut().as_mut() {
            file.write_all(&buffer[..n])?;
        }
        Ok(n)
    }
}

/// Counts the bytes that a decompressor has consumed, not those that were only buffered.
struct Counted<R> {
    inner: R,
    taken: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.taken.set(self.taken.get() + n as u64);
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.taken.set(self.taken.get() + n as u64);
        self.inner.consume(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"one\ntwo\nthree\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<u8>, HostError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut input = Input::open(file.path())?;
        let (mut all, mut buffer) = (Vec::new(), [0; 5]);
        loop {
            let n = input.read_full(&mut buffer).map_err(|e| input.explain(e, 7))?;
            if n == 0 {
                assert_eq!(input.taken(), bytes.len() as u64);
                return Ok(all);
            }
            all.extend_from_slice(&buffer[..n]);
        }
    }

    #[test]
    fn packing_is_known_by_content_and_may_have_several_members() {
        let twice = [TEXT, TEXT].concat();
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9], &zstd(TEXT)[..]].concat();
        assert_eq!(read(TEXT).unwrap(), TEXT);
        assert_eq!(read(b"1").unwrap(), b"1");
        assert_eq!(read(&gzip(TEXT)).unwrap(), TEXT);
        assert_eq!(read(&zstd(TEXT)).unwrap(), TEXT);
        assert_eq!(read(&[gzip(TEXT), gzip(TEXT)].concat()).unwrap(), twice);
        assert_eq!(read(&[zstd(TEXT), zstd(TEXT)].concat()).unwrap(), twice);
        assert_eq!(read(&skippable).unwrap(), TEXT);
    }

    #[test]
    fn bytes_can_be_left_out() {
        for bytes in [TEXT.to_vec(), gzip(TEXT), zstd(TEXT)] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            for count in [0, 4, TEXT.len(), TEXT.len() + 9] {
                let mut input = Input::open(file.path()).unwrap();
                let there = count.min(TEXT.len());
                assert_eq!(input.skip(count as u64).unwrap(), there as u64);
                let mut rest = vec![0; 99];
                let read = input.read_full(&mut rest).unwrap();
                assert_eq!(rest[..read], TEXT[there..]);
                assert_eq!(input.taken(), bytes.len() as u64);
            }
        }
    }

    #[test]
    fn every_cut_of_a_packed_file_is_seen_and_says_where() {
        for packed in [gzip(TEXT), zstd(TEXT)] {
            for cut in MAGIC_BYTES..packed.len() {
                match read(&packed[..cut]) {
                    Err(HostError::Truncated { byte, lines, .. }) => {
                        assert_eq!((byte, lines), (cut as u64, 7));
                    }
                    other => panic!("cut at {cut}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn other_bytes_after_the_data_are_distinguished_from_truncation() {
        let bytes = [zstd(TEXT), b"this is no member".to_vec()].concat();
        assert!(matches!(read(&bytes), Err(HostError::Damaged { .. })));
        let packed = gzip(TEXT);
        for more in [&b"this is no member"[..], b"\n", &[0; 512]] {
            let read = read(&[&packed[..], more].concat());
            let Err(HostError::Trailing { byte, lines, .. }) = read else { panic!("{read:?}") };
            assert_eq!((byte, lines), (packed.len() as u64, 7));
        }
    }

    #[test]
    fn a_later_member_may_be_truncated() {
        let packed = gzip(TEXT);
        for cut in 1..packed.len() {
            let read = read(&[&packed[..], &packed[..cut]].concat());
            assert!(matches!(read, Err(HostError::Truncated { .. })), "cut at {cut}: {read:?}");
        }
    }

    #[test]
    fn a_changed_byte_breaks_the_checksum_of_gzip() {
        let mut bytes = gzip(TEXT);
        let checksum = bytes.len() - 8;
        bytes[checksum] ^= 1;
        assert!(matches!(read(&bytes), Err(HostError::Damaged { .. })));
    }

    #[test]
    fn what_is_no_file_with_bytes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Input::open(folder.path()), Err(HostError::Directory { .. })));
        let none = folder.path().join("none");
        assert!(matches!(Input::open(&none), Err(HostError::Open { .. })));
        assert!(matches!(read(b""), Err(HostError::Empty { .. })));
    }

    #[test]
    fn a_pipe_can_be_read_twice_until_read_once() {
        let packed = zstd(TEXT);
        let open = || Input::once("pipe".into(), Box::new(Cursor::new(packed.clone()))).unwrap();
        let mut buffer = [0; 64];
        let mut input = open();
        assert_eq!(input.read_full(&mut buffer).unwrap(), TEXT.len());
        let mut second = input.reopen().unwrap();
        assert_eq!(second.read_full(&mut buffer).unwrap(), TEXT.len());
        assert_eq!(&buffer[..TEXT.len()], TEXT);
        let mut input = open();
        input.read_once();
        assert!(matches!(&input.again, Again::Copy(copy) if copy.borrow().is_none()));
        let mut unpacked = Vec::new();
        input.into_file().unwrap().read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, TEXT);
    }
}
