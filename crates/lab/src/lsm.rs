//! RocksDB and LevelDB through their C interfaces. The functions used here differ only in the
//! prefix of their names.
#![allow(unsafe_code, reason = "the libraries have C interfaces for other languages only")]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;

use crate::error::StackError;
use crate::kinds::{App, Io};
use crate::library::{SharedLibrary, functions};

/// An object of the library.
type Object = *mut c_void;
type Text = *mut c_char;

functions! {
    /// The functions that are called, as `leveldb/c.h` and `rocksdb/c.h` declare them.
    struct Api {
        open: fn(Object, *const c_char, *mut Text) -> Object = "open",
        close: fn(Object) = "close",
        put: fn(Object, Object, *const c_char, usize, *const c_char, usize, *mut Text) = "put",
        get: fn(Object, Object, *const c_char, usize, *mut usize, *mut Text) -> Text = "get",
        free: fn(*mut c_void) = "free",
        new_iterator: fn(Object, Object) -> Object = "create_iterator",
        seek_first: fn(Object) = "iter_seek_to_first",
        is_valid: fn(Object) -> c_uchar = "iter_valid",
        next: fn(Object) = "iter_next",
        iterator_error: fn(Object, *mut Text) = "iter_get_error",
        end_iterator: fn(Object) = "iter_destroy",
        new_options: fn() -> Object = "options_create",
        new_read_options: fn() -> Object = "readoptions_create",
        new_write_options: fn() -> Object = "writeoptions_create",
        end_options: fn(Object) = "options_destroy",
        end_read_options: fn(Object) = "readoptions_destroy",
        end_write_options: fn(Object) = "writeoptions_destroy",
    }
}

/// An open store.
pub(super) struct LsmStore {
    app: App,
    store: Object,
    options: Object,
    read: Object,
    write: Object,
    api: Api,
    /// Last, so that it is closed after everything that points into it.
    _library: Library,
}

/// Options of a store that differ from the defaults of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct LsmSetup {
    /// Whether tables of RocksDB bypass the page cache.
    pub io: Io,
    /// For RocksDB: size of the memtable, and of a table; LevelDB keeps its 4 MiB and 2 MiB.
    pub write_buffer: u64,
}

/// Tables in level 1 of RocksDB, as by default: 256 MiB in tables of 64 MiB.
const LEVEL_1_TABLES: u64 = 4;

/// `leveldb_no_compression` and `rocksdb_no_compression`: values are random, and all their bytes
/// shall be written.
const NO_COMPRESSION: c_int = 0;

impl LsmStore {
    /// Opens the store in `folder`; creates it if it does not exist.
    ///
    /// # Errors
    /// [`StackError`] if the library is missing or the store cannot be opened.
    pub fn open(app: App, folder: &Path, setup: LsmSetup) -> Result<Self, StackError> {
        let wanted =
            SharedLibrary::by(app).expect("only called for applications of such a library");
        let library = wanted.open()?;
        let prefix = if app == App::RocksDb { "rocksdb" } else { "leveldb" };
        // SAFETY: the types are those of both headers, and the library is kept with the functions.
        let api = unsafe { Api::of(wanted, &library, prefix)? };
        // SAFETY: these create objects, which are destroyed when this is dropped.
        let (options, read, write) =
            unsafe { ((api.new_options)(), (api.new_read_options)(), (api.new_write_options)()) };
        set(wanted, &library, prefix, options, setup)?;
        let store = ptr::null_mut();
        let mut opened = Self { app, store, options, read, write, api, _library: library };
        let name = CString::new(folder.as_os_str().as_encoded_bytes())
            .expect("a path that was opened has no zero byte");
        let mut error = ptr::null_mut();
        // SAFETY: the name ends with zero, and options live as long as the store.
        opened.store = unsafe { (opened.api.open)(options, name.as_ptr(), &mut error) };
        opened.check(error)?;
        Ok(opened)
    }

    /// Gives `key` the value `value`. By the defaults of the libraries, the log is not synced.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StackError> {
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: key and value are copied before the call ends.
        unsafe {
            (self.api.put)(self.store, self.write, k, key.len(), v, value.len(), &mut error);
        }
        self.check(error)
    }

    /// Whether `key` has a value.
    pub fn get(&mut self, key: &[u8]) -> Result<bool, StackError> {
        let (mut error, mut bytes) = (ptr::null_mut(), 0);
        let k = key.as_ptr().cast();
        // SAFETY: the key lives during the call; the value is ours to free, also if it is null.
        let found = unsafe {
            let value = (self.api.get)(self.store, self.read, k, key.len(), &mut bytes, &mut error);
            (self.api.free)(value.cast());
            !value.is_null()
        };
        self.check(error).map(|()| found)
    }

    /// Reads the first `records` records in the order of their keys. Returns how many there were.
    pub fn scan(&mut self, records: u64) -> Result<u64, StackError> {
        let (mut read, mut error) = (0, ptr::null_mut());
        // SAFETY: the iterator lives until it is destroyed here, before the store; keys and values
        // are those of the iterator until it moves.
        unsafe {
            let iterator = (self.api.new_iterator)(self.store, self.read);
            (self.api.seek_first)(iterator);
            while read < records && (self.api.is_valid)(iterator) != 0 {
                read += 1;
                (self.api.next)(iterator);
            }
            (self.api.iterator_error)(iterator, &mut error);
            (self.api.end_iterator)(iterator);
        }
        self.check(error).map(|()| read)
    }

    fn check(&self, error: Text) -> Result<(), StackError> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the library made the text, which ends with zero and is ours to free.
        let said = unsafe {
            let said = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.api.free)(error.cast());
            said
        };
        Err(StackError::Application { app: self.app, said })
    }
}

impl Drop for LsmStore {
    fn drop(&mut self) {
        // SAFETY: each was made by the library and is not used again; the store, which uses the
        // options, is closed first.
        unsafe {
            if !self.store.is_null() {
                (self.api.close)(self.store);
            }
            (self.api.end_options)(self.options);
            (self.api.end_read_options)(self.read);
            (self.api.end_write_options)(self.write);
        }
    }
}

type SetFlag = unsafe extern "C" fn(Object, c_uchar);
type SetInt = unsafe extern "C" fn(Object, c_int);
type SetSize = unsafe extern "C" fn(Object, usize);
type SetBytes = unsafe extern "C" fn(Object, u64);

fn set(
    wanted: SharedLibrary,
    library: &Library,
    prefix: &str,
    options: Object,
    setup: LsmSetup,
) -> Result<(), StackError> {
    let name = |name: &str| format!("{prefix}_options_set_{name}");
    // SAFETY: the types are those of the headers, and the options are the library's.
    unsafe {
        let create: SetFlag = wanted.function(library, &name("create_if_missing"))?;
        create(options, 1);
        let compression: SetInt = wanted.function(library, &name("compression"))?;
        compression(options, NO_COMPRESSION);
        if prefix != "rocksdb" {
            return Ok(());
        }
        let buffer: SetSize = wanted.function(library, &name("write_buffer_size"))?;
        buffer(options, setup.write_buffer as usize);
        let table: SetBytes = wanted.function(library, &name("target_file_size_base"))?;
        table(options, setup.write_buffer);
        let level: SetBytes = wanted.function(library, &name("max_bytes_for_level_base"))?;
        level(options, LEVEL_1_TABLES * setup.write_buffer);
        let direct = c_uchar::from(setup.io == Io::Direct);
        let reads: SetFlag = wanted.function(library, &name("use_direct_reads"))?;
        reads(options, direct);
        let writes = name("use_direct_io_for_flush_and_compaction");
        let writes: SetFlag = wanted.function(library, &writes)?;
        writes(options, direct);
    }
    Ok(())
}
