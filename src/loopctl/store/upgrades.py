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
)
"""The version that each step leads to, and its statements, in order."""
