//! A table of names and descriptions in SQLite, through its C interface.
#![allow(unsafe_code, reason = "the library has a C interface only")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;

use crate::error::StackError;
use crate::kinds::App;
use crate::library::{SharedLibrary, functions};

/// The result of a successful call. Source: sqlite3.h, also for the next constants.
const OK: c_int = 0;
/// A step returned a row.
const ROW: c_int = 100;
/// A step finished its statement.
const DONE: c_int = 101;
/// The destructor of a bound value that is not changed until the statement is reset.
const STATIC: *const c_void = ptr::null();

type Db = *mut c_void;
type Statement = *mut c_void;

functions! {
    /// The functions that are called, as sqlite3.h declares them.
    struct Api {
        open: fn(*const c_char, *mut Db) -> c_int = "open",
        close: fn(Db) -> c_int = "close",
        message: fn(Db) -> *const c_char = "errmsg",
        exec: fn(Db, *const c_char, *const c_void, *mut c_void, *mut *mut c_char) -> c_int = "exec",
        prepare: fn(Db, *const c_char, c_int, *mut Statement, *mut *const c_char) -> c_int
            = "prepare_v2",
        bind_text: fn(Statement, c_int, *const c_char, c_int, *const c_void) -> c_int = "bind_text",
        bind_blob: fn(Statement, c_int, *const c_void, c_int, *const c_void) -> c_int = "bind_blob",
        step: fn(Statement) -> c_int = "step",
        reset: fn(Statement) -> c_int = "reset",
        finalize: fn(Statement) -> c_int = "finalize",
    }
}

/// An open database with the table and its statements.
pub(super) struct Sqlite {
    app: App,
    db: Db,
    put: Statement,
    get: Statement,
    api: Api,
    /// Last, so that it is closed after everything that points into it.
    _library: Library,
}

/// The statement that makes the table. Source: the workloads of the unwritten contract's
/// authors.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS t (name TEXT PRIMARY KEY, description BLOB)";

/// Updates a row in place; replacing it would move it to the end of the table.
const PUT: &CStr = c"INSERT INTO t VALUES (?1, ?2) \
    ON CONFLICT (name) DO UPDATE SET description = excluded.description";

const GET: &CStr = c"SELECT description FROM t WHERE name = ?1";

impl Sqlite {
    /// Opens the database at `file` with the journal of `app`; creates it if it does not exist.
    ///
    /// # Errors
    /// [`StackError`] if the library is missing or the database cannot be opened.
    pub fn open(app: App, file: &Path) -> Result<Self, StackError> {
        let wanted = SharedLibrary::by(app).expect("only called for applications of this library");
        let library = wanted.open()?;
        // SAFETY: the types are those of sqlite3.h, and the library is kept with the functions.
        let api = unsafe { Api::of(wanted, &library, "sqlite3")? };
        let null = ptr::null_mut();
        let mut opened = Self { app, db: null, put: null, get: null, api, _library: library };
        let name = CString::new(file.as_os_str().as_encoded_bytes())
            .expect("a path that was opened has no zero byte");
        // SAFETY: the name is text that ends with zero; the place of the result lives on.
        let code = unsafe { (opened.api.open)(name.as_ptr(), &mut opened.db) };
        opened.check(code)?;
        let journal = if app == App::SqliteWal { "WAL" } else { "DELETE" };
        opened.run(&format!("PRAGMA journal_mode = {journal}"))?;
        opened.run("PRAGMA synchronous = FULL")?;
        opened.run(TABLE)?;
        opened.put = opened.prepared(PUT)?;
        opened.get = opened.prepared(GET)?;
        Ok(opened)
    }

    /// Begins a transaction.
    pub fn begin(&mut self) -> Result<(), StackError> {
        self.run("BEGIN")
    }

    /// Commits a transaction, which is durable then.
    pub fn commit(&mut self) -> Result<(), StackError> {
        self.run("COMMIT")
    }

    /// Gives `key` the value `value`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StackError> {
        self.bind_key(self.put, key)?;
        let bytes = value.len() as c_int;
        // SAFETY: statement and value live until the statement is reset below.
        let code = unsafe {
            (self.api.bind_blob)(self.put, 2, value.as_ptr().cast::<c_void>(), bytes, STATIC)
        };
        self.check(code)?;
        self.stepped(self.put).map(drop)
    }

    /// Whether `key` has a value.
    pub fn get(&mut self, key: &[u8]) -> Result<bool, StackError> {
        self.bind_key(self.get, key)?;
        self.stepped(self.get)
    }

    fn run(&mut self, sql: &str) -> Result<(), StackError> {
        let sql = CString::new(sql).expect("statements have no zero byte");
        let null = ptr::null_mut();
        // SAFETY: the statement is text that ends with zero; nothing is called back.
        let code =
            unsafe { (self.api.exec)(self.db, sql.as_ptr(), ptr::null(), null, null.cast()) };
        self.check(code)
    }

    fn prepared(&mut self, sql: &CStr) -> Result<Statement, StackError> {
        let mut statement = ptr::null_mut();
        // SAFETY: as for `run`; a length of -1 means up to the zero.
        let code = unsafe {
            (self.api.prepare)(self.db, sql.as_ptr(), -1, &mut statement, ptr::null_mut())
        };
        self.check(code).map(|()| statement)
    }

    fn bind_key(&mut self, statement: Statement, key: &[u8]) -> Result<(), StackError> {
        let text = key.as_ptr().cast::<c_char>();
        // SAFETY: the caller steps and resets the statement while the key lives.
        let code = unsafe { (self.api.bind_text)(statement, 1, text, key.len() as c_int, STATIC) };
        self.check(code)
    }

    /// Runs a statement to its end. Returns whether it had a row.
    fn stepped(&mut self, statement: Statement) -> Result<bool, StackError> {
        // SAFETY: the statement belongs to this database and what is bound lives.
        let (step, reset) = unsafe { ((self.api.step)(statement), (self.api.reset)(statement)) };
        match step {
            ROW => Ok(true),
            DONE => Ok(false),
            // The reset returns the error of the step.
            _ => self.check(reset).map(|()| false),
        }
    }

    fn check(&self, code: c_int) -> Result<(), StackError> {
        if code == OK {
            return Ok(());
        }
        let said = if self.db.is_null() {
            format!("error {code} of the library")
        } else {
            // SAFETY: the text is the library's until the next call.
            let text = unsafe { CStr::from_ptr((self.api.message)(self.db)) };
            text.to_string_lossy().into_owned()
        };
        Err(StackError::Application { app: self.app, said })
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // SAFETY: each is null, which the library ignores, or was made by it and is not used
        // again. Statements are finalized before their database is closed.
        unsafe {
            (self.api.finalize)(self.put);
            (self.api.finalize)(self.get);
            (self.api.close)(self.db);
        }
    }
}
