"""The tables of a study file, their versions, and every SQL statement that touches them.

``application_id`` says that a file is a study, ``user_version`` which version its tables have.
Migrations only go forward: step v brings a file from version v to v + 1. A file may hold these
tables and nothing else, so a trigger or view in a file from elsewhere never runs.
"""

from __future__ import annotations

APPLICATION_ID = 0x4E507374  # "NPst"
VERSION = 1
PAGE_SIZE = 8192  # measured: least time and space for points of 100 to 500 variables

TABLES = {
    "events": """CREATE TABLE events (
  seq INTEGER PRIMARY KEY,   -- 1, 2, 3, ... without gaps: the order of what happened
  kind TEXT NOT NULL,        -- created asked started heartbeat told failed retried note closed
  time REAL NOT NULL,        -- seconds since 1970-01-01 UTC, for people
  trial INTEGER,             -- number of the proposed point, from 0; NULL for a point from outside
  ask INTEGER,               -- asked: number of the call of ask, from 0
  text TEXT,                 -- JSON object: description, note, reason, worker
  x BLOB,                    -- point, little-endian float64
  f BLOB,                    -- objectives, little-endian float64
  g BLOB,                    -- constraints, little-endian float64
  checksum BLOB NOT NULL     -- BLAKE2b-128 of all other columns
)""",
    "description": """CREATE TABLE description (
  copy INTEGER PRIMARY KEY,  -- 1
  text TEXT NOT NULL,        -- second copy of the created event's JSON, for rescue
  checksum BLOB NOT NULL     -- BLAKE2b-128 of text
)""",
    "memory": """CREATE TABLE memory (
  position INTEGER PRIMARY KEY,
  ask INTEGER NOT NULL,      -- the call of ask that left this memory
  name TEXT NOT NULL,
  dtype TEXT NOT NULL,       -- as numpy writes it: <f8, <i8, |b1, ...
  shape TEXT NOT NULL,       -- JSON list
  data BLOB NOT NULL,        -- the array's bytes, rows first
  checksum BLOB NOT NULL     -- BLAKE2b-128 of name, dtype, shape (each with a newline) and data
)""",
    "owner": """CREATE TABLE owner (
  slot INTEGER PRIMARY KEY,  -- 1
  text TEXT NOT NULL         -- JSON: host, pid, start time, boot, token of the present writer
)""",
}

HISTORY: dict[int, dict[str, str]] = {VERSION: TABLES}
"""The tables of every version that can be read, old ones included."""

MIGRATIONS: dict[int, tuple[str, ...]] = {}
"""Statements that bring a file from version v to v + 1, for every older version v."""

COLUMNS = "seq, kind, time, trial, ask, text, x, f, g, checksum"

SET_IDENTITY = f"PRAGMA application_id = {APPLICATION_ID}"
SET_VERSION = f"PRAGMA user_version = {VERSION}"
SET_PAGE_SIZE = f"PRAGMA page_size = {PAGE_SIZE}"
# trusted_schema keeps functions in a foreign schema from running; a mapped file would turn an
# I/O error into a crash of the process.
PREPARE = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA busy_timeout = 10000",
    "PRAGMA synchronous = FULL",
)
# Whoever copies the file of a running study without its journal shall miss little: 1 MiB.
SHORT_JOURNAL = "PRAGMA wal_autocheckpoint = 128"
EMPTY_JOURNAL = "PRAGMA wal_checkpoint(TRUNCATE)"
WAIT_FOR_NOBODY = "PRAGMA busy_timeout = 0"
JOURNAL = {"wal": "PRAGMA journal_mode = WAL", "delete": "PRAGMA journal_mode = DELETE"}
IDENTITY = "PRAGMA application_id"
USER_VERSION = "PRAGMA user_version"
QUICK_CHECK = "PRAGMA quick_check(20)"
# Cut short, because a file from elsewhere may hold names of any length.
OBJECTS = "SELECT type, substr(name, 1, 200), substr(sql, 1, 5000) FROM sqlite_master LIMIT 50"
HAS_TABLE = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
READ_ONLY = "PRAGMA query_only = ON"
COPY_INTO = "VACUUM INTO ?"

BEGIN = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"

ADD_EVENT = f"INSERT INTO events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
EVENTS_AFTER = f"SELECT {COLUMNS} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
EVENTS_BEFORE = f"SELECT {COLUMNS} FROM events WHERE seq < ? ORDER BY seq DESC LIMIT ?"
LAST_EVENT = "SELECT seq, time FROM events ORDER BY seq DESC LIMIT 1"

READ_DESCRIPTION = "SELECT text, checksum FROM description"
ADD_DESCRIPTION = "INSERT INTO description (copy, text, checksum) VALUES (1, ?, ?)"

READ_MEMORY = "SELECT ask, name, dtype, shape, data, checksum FROM memory ORDER BY position"
CLEAR_MEMORY = "DELETE FROM memory"
ADD_MEMORY = (
    "INSERT INTO memory (position, ask, name, dtype, shape, data, checksum) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)

READ_OWNER = "SELECT text FROM owner WHERE slot = 1"
SET_OWNER = "INSERT OR REPLACE INTO owner (slot, text) VALUES (1, ?)"
CLEAR_OWNER = "DELETE FROM owner"
