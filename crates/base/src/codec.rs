//! Values as bytes and back: numbers, lists and maps as [borsh](https://borsh.io) defines them.
//! Snapshots of drives are read in place, over a new structure of the same configuration, so that
//! only its state is stored.

use std::io::{Error, ErrorKind, Result};

use borsh::{BorshDeserialize, BorshSerialize};
use bytemuck::Pod;

use crate::Zeroed;

/// A structure whose state can be stored. [`snapshot_fields!`](crate::snapshot_fields)
/// implements it.
pub trait Snapshot {
    /// Appends the state.
    fn save_fields(&self, out: &mut Vec<u8>);

    /// Takes the state from the front of `from`. `self` is new and gives the lengths of columns.
    ///
    /// # Errors
    /// If the bytes end too early, are no such values, or a column has another length. What the
    /// values mean is not checked.
    fn load_fields(&mut self, from: &mut &[u8]) -> Result<()>;
}

/// Implements [`Snapshot`] for a structure by its fields: `parts` are structures of the kind
/// themselves, or slices or options of such; `columns` are vectors that keep their length;
/// `values` are of any other type that borsh knows. They are stored in this order.
#[macro_export]
macro_rules! snapshot_fields {
    ($owner:ty {
        $(parts: $($part:ident),+;)?
        $(columns: $($($column:ident).+),+;)?
        $(values: $($($value:ident).+),+;)?
    }) => {
        impl $crate::Snapshot for $owner {
            fn save_fields(&self, out: &mut Vec<u8>) {
                $($(self.$part.save_fields(out);)+)?
                $($($crate::codec::save(&self.$($column).+, out);)+)?
                $($($crate::codec::save(&self.$($value).+, out);)+)?
            }

            fn load_fields(&mut self, from: &mut &[u8]) -> std::io::Result<()> {
                $($(self.$part.load_fields(from)?;)+)?
                $($($crate::codec::load_column(&mut self.$($column).+, from)?;)+)?
                $($(self.$($value).+ = $crate::codec::load(from)?;)+)?
                Ok(())
            }
        }
    };
}

/// The error of bytes whose content cannot be.
#[must_use]
pub fn invalid(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

/// Appends `value`.
pub fn save<T: BorshSerialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    value.serialize(out).expect("memory takes any bytes");
}

/// Takes a value from the front of `from`.
///
/// # Errors
/// If the bytes end too early or are no such value.
pub fn load<T: BorshDeserialize>(from: &mut &[u8]) -> Result<T> {
    T::deserialize(from)
}

/// The value that `bytes` are, to the last one.
///
/// # Errors
/// As [`load`], or if bytes are left.
pub fn load_whole<T: BorshDeserialize>(bytes: &[u8]) -> Result<T> {
    T::try_from_slice(bytes)
}

/// Takes a vector as long as `column` from the front of `from`.
///
/// # Errors
/// As [`load`], or if the length differs.
pub fn load_column<T: BorshDeserialize>(column: &mut Vec<T>, from: &mut &[u8]) -> Result<()> {
    let len = column.len();
    *column = load(from)?;
    if column.len() == len { Ok(()) } else { Err(invalid("a column has the wrong length")) }
}

impl<T: Snapshot> Snapshot for [T] {
    fn save_fields(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|part| part.save_fields(out));
    }

    fn load_fields(&mut self, from: &mut &[u8]) -> Result<()> {
        self.iter_mut().try_for_each(|part| part.load_fields(from))
    }
}

impl<T: Snapshot> Snapshot for Option<T> {
    fn save_fields(&self, out: &mut Vec<u8>) {
        self.as_slice().save_fields(out);
    }

    fn load_fields(&mut self, from: &mut &[u8]) -> Result<()> {
        self.as_mut_slice().load_fields(from)
    }
}

impl<T: Snapshot + ?Sized> Snapshot for Box<T> {
    fn save_fields(&self, out: &mut Vec<u8>) {
        (**self).save_fields(out);
    }

    fn load_fields(&mut self, from: &mut &[u8]) -> Result<()> {
        (**self).load_fields(from)
    }
}

/// The bytes of a vector of the same values, copied as a whole: the map of a drive has a hundred
/// million entries.
impl<T: Pod + BorshSerialize + BorshDeserialize> Snapshot for Zeroed<T> {
    fn save_fields(&self, out: &mut Vec<u8>) {
        if cfg!(target_endian = "big") {
            return save(&**self, out);
        }
        save(&(self.len() as u32), out);
        out.extend_from_slice(bytemuck::cast_slice(self));
    }

    fn load_fields(&mut self, from: &mut &[u8]) -> Result<()> {
        let len = load::<u32>(from)? as usize;
        let bytes = from.split_off(..len * size_of::<T>()).filter(|_| len == self.len());
        let bytes = bytes.ok_or_else(|| invalid("a column has the wrong length"))?;
        // Zeros are not written, so that they take no memory.
        let chunks = self.chunks_mut(1024).zip(bytes.chunks(1024 * size_of::<T>()));
        for (to, mut bytes) in chunks.filter(|(_, bytes)| bytes.iter().any(|&byte| byte != 0)) {
            if cfg!(target_endian = "big") {
                to.iter_mut().try_for_each(|value| load(&mut bytes).map(|new| *value = new))?;
            } else {
                bytemuck::cast_slice_mut(to).copy_from_slice(bytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Owner {
        map: Zeroed<u32>,
        inner: Option<Box<Owner>>,
        column: Vec<u16>,
        list: Vec<u8>,
    }

    snapshot_fields!(Owner { parts: map, inner; columns: column; values: list; });

    fn owner(map: usize, inner: Option<Box<Owner>>) -> Owner {
        Owner { map: Zeroed::new(map), inner, column: vec![0; 2], list: Vec::new() }
    }

    #[test]
    fn what_was_saved_is_loaded_and_other_lengths_are_refused() {
        let mut saved = owner(3000, Some(Box::new(owner(0, None))));
        (saved.map[2999], saved.column, saved.list) = (7, vec![8, 9], vec![1, 2, 3]);
        let mut bytes = Vec::new();
        saved.save_fields(&mut bytes);
        let mut loaded = owner(3000, Some(Box::new(owner(0, None))));
        loaded.load_fields(&mut &bytes[..]).unwrap();
        assert!(*loaded.map == *saved.map && loaded.list == saved.list);
        assert_eq!((loaded.column, loaded.inner.unwrap().column), (vec![8, 9], vec![0; 2]));
        let mut as_vector = Vec::new();
        save(&saved.map.to_vec(), &mut as_vector);
        assert!(bytes.starts_with(&as_vector));
        for len in [2999, 3001] {
            assert!(owner(len, None).load_fields(&mut &bytes[..]).is_err());
        }
        for len in [0, 3, 5000, bytes.len() - 1] {
            let mut other = owner(3000, Some(Box::new(owner(0, None))));
            assert!(other.load_fields(&mut &bytes[..len]).is_err(), "{len} bytes");
        }
    }
}
