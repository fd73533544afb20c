"""Writes to a database whose file system may be killed, and checks what is there afterwards.

    databases.py write sqlite|rocksdb DATABASE ACKNOWLEDGED
    databases.py check sqlite|rocksdb DATABASE ACKNOWLEDGED

Each row is synced before its number is appended to the file ACKNOWLEDGED, which is on another file
system. `check` opens the database again: all acknowledged rows have to be there with their values.
"""

import hashlib
import os
import sqlite3
import sys


def value(row):
    """The value of a row: 32 to 4,096 bytes that follow from its number."""
    seed = hashlib.sha256(str(row).encode()).digest()
    return seed * (1 + seed[0] % 128)


class Sqlite:
    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)
        # The name of the database says which kind of journal it has.
        mode = "WAL" if path.endswith("wal") else "DELETE"
        self.db.execute(f"PRAGMA journal_mode={mode}")
        # With FULL the removal of a rollback journal, which commits, is not synced.
        self.db.execute("PRAGMA synchronous=EXTRA")
        self.db.execute("CREATE TABLE IF NOT EXISTS rows(row INTEGER PRIMARY KEY, value BLOB)")

    def put(self, row):
        self.db.execute("INSERT OR REPLACE INTO rows VALUES(?, ?)", (row, value(row)))

    def get(self, row):
        found = self.db.execute("SELECT value FROM rows WHERE row = ?", (row,)).fetchone()
        return found and found[0]

    def is_whole(self):
        return self.db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


class Rocksdb:
    def __init__(self, path):
        from rocksdict import Options, Rdict, WriteOptions

        options = Options(raw_mode=True)
        # Small, so that tables are written and compacted while the rows are.
        options.set_write_buffer_size(1 << 18)
        options.set_target_file_size_base(1 << 18)
        # Damage is an error and nothing is left out.
        options.set_paranoid_checks(True)
        self.db = Rdict(path, options)
        write = WriteOptions()
        write.sync = True
        self.db.set_write_options(write)

    def put(self, row):
        self.db[str(row).encode()] = value(row)

    def get(self, row):
        return self.db.get(str(row).encode())

    def is_whole(self):
        # Reads every block, and compares its checksum.
        rows = sorted(int(key) for key in self.db.keys())
        return all(self.get(row) == value(row) for row in rows)


def acknowledged(path):
    if not os.path.exists(path):
        return 0
    with open(path) as file:
        return sum(1 for _ in file)


def main():
    action, kind, path, log = sys.argv[1:]
    db = {"sqlite": Sqlite, "rocksdb": Rocksdb}[kind](path)
    rows = acknowledged(log)
    if action == "check":
        if rows == 0:
            sys.exit(f"{path}: no row was acknowledged")
        lost = [row for row in range(rows) if db.get(row) != value(row)]
        if lost or not db.is_whole():
            sys.exit(f"{path}: of {rows} acknowledged rows these are lost: {lost[:10]}")
        print(f"  {kind}: {rows} acknowledged rows are there")
        return
    with open(log, "a") as file:
        while True:
            db.put(rows)
            # SQLite goes on if it cannot open the folder to sync the removal of its journal, as
            # after a kill in that moment.
            os.stat(os.path.dirname(path))
            file.write(f"{rows}\n")
            file.flush()
            rows += 1


main()
