"""What turns a database of an older version into one of the next, statement by statement.

Never changed once released: a file of any version is brought up through all the versions
between. ``schema.sql`` is what a new file is made of; a test holds the two together.
"""

from typing import Final

UPGRADES: Final[tuple[tuple[int, tuple[str, ...]], ...]] = (
    (
        2,
        (
            "ALTER TABLE decisions ADD COLUMN call_key TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE decisions ADD COLUMN is_applied INTEGER NOT NULL DEFAULT 0",
            """CREATE TABLE calls (
                key         TEXT PRIMARY KEY,
                session_id  TEXT NOT NULL REFERENCES sessions (id),
                iteration   INTEGER NOT NULL CHECK (iteration >= 0),
                ordinal     INTEGER NOT NULL CHECK (ordinal >= 0),
                tool        TEXT NOT NULL,
                args_sha256 TEXT NOT NULL,
                state       TEXT NOT NULL CHECK (state IN ('intent', 'done', 'unknown')),
                owner       TEXT NOT NULL,
                result      TEXT,
                created     TEXT NOT NULL,
                expires     TEXT NOT NULL,
                UNIQUE (session_id, iteration, ordinal),
                CHECK ((state = 'done') = (result IS NOT NULL))
            ) STRICT""",
            """CREATE TABLE approvals (
                token       TEXT PRIMARY KEY,
                decision_id TEXT NOT NULL UNIQUE REFERENCES decisions (id),
                run_id      TEXT NOT NULL REFERENCES runs (id),
                session_id  TEXT NOT NULL REFERENCES sessions (id),
                iteration   INTEGER NOT NULL,
                ordinal     INTEGER NOT NULL,
                tool        TEXT NOT NULL,
                args_sha256 TEXT NOT NULL,
                expires     TEXT NOT NULL,
                used        TEXT
            ) STRICT""",
        ),
    ),
    (
        3,
        (
            """CREATE TABLE replies (
                session_id TEXT NOT NULL REFERENCES sessions (id),
                iteration  INTEGER NOT NULL CHECK (iteration >= 0),
                number     INTEGER NOT NULL CHECK (number >= 0),
                reply      BLOB NOT NULL,
                PRIMARY KEY (session_id, iteration, number)
            ) STRICT, WITHOUT ROWID""",
            """CREATE TABLE spendings (
                id                INTEGER PRIMARY KEY,
                run_id            TEXT NOT NULL REFERENCES runs (id),
                task              TEXT NOT NULL,
                purpose           TEXT NOT NULL,
                model             TEXT NOT NULL,
                is_settled        INTEGER NOT NULL DEFAULT 0,
                prompt_tokens     INTEGER NOT NULL CHECK (prompt_tokens >= 0),
                completion_tokens INTEGER NOT NULL DEFAULT 0 CHECK (completion_tokens >= 0),
                micro_usd         INTEGER NOT NULL CHECK (micro_usd >= 0)
            ) STRICT""",
            "CREATE INDEX spendings_by_task ON spendings (run_id, task)",
        ),
    ),
    (
        4,
        (
            """CREATE TABLE pins (
                scope   TEXT NOT NULL,
                name    TEXT NOT NULL,
                content TEXT NOT NULL,
                PRIMARY KEY (scope, name)
            ) STRICT, WITHOUT ROWID""",
        ),
    ),
)
"""The version that each step leads to, and its statements, in order."""
