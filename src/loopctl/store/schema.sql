-- .local/loop.db: what must survive the process. Only the engine's process writes it.
--
--   runs         one row a run; written at its start and at each of its ends
--   sessions     one row a candidate of a task in a run; written when its sandbox is first made
--   checkpoints  one row a step, written once and never changed; and while a step waits for a
--                person one row an interrupt, its number flagged (plan.interrupt_key)
--   decisions    one row a question to a human; written when raised and when answered
--   calls        the ledger: one row a tool call that left the sandbox; written before it is made
--                (intent), when its result is known (done), when nobody knows it (unknown)
--   approvals    one row a token that lets one call happen; written when granted and when used
--   replies      one row a reply of a model within a step that is not at its end; written before any
--                of its calls is made, gone with the step's checkpoint
--   spendings    one row a model call: what it can cost, written before it; what it has cost, after
--   pins         what was seen once and has to stay as it was: one row a tool of a server (scope
--                mcp:NAME:HASH), one row a file of a hook (scope hooks:RUN)
--   verdicts     a cache of what checks found on a tree; may be emptied at any time

CREATE TABLE runs (
    id            TEXT PRIMARY KEY,
    status        TEXT NOT NULL CHECK (status IN ('running', 'complete', 'needs_human', 'stalled',
                                                  'budget_exhausted', 'failed', 'interrupted')),
    goal          TEXT NOT NULL,
    base          TEXT NOT NULL,
    branch        TEXT NOT NULL,
    started       TEXT NOT NULL,
    ended         TEXT,
    scope         TEXT NOT NULL,
    verify_cmd    TEXT,
    is_wip        INTEGER NOT NULL,
    settings      TEXT NOT NULL,
    settings_hash TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
    id        TEXT PRIMARY KEY,
    run_id    TEXT NOT NULL REFERENCES runs (id),
    task      TEXT NOT NULL,
    candidate TEXT NOT NULL,
    base      TEXT NOT NULL,
    UNIQUE (run_id, task, candidate)
) STRICT;

CREATE TABLE checkpoints (
    session_id     TEXT NOT NULL REFERENCES sessions (id),
    loop_iteration INTEGER NOT NULL CHECK (loop_iteration >= 0),
    hash           TEXT NOT NULL,
    blob           BLOB NOT NULL,
    UNIQUE (session_id, loop_iteration)
) STRICT;

CREATE TABLE decisions (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    task        TEXT NOT NULL,
    run_id      TEXT NOT NULL REFERENCES runs (id),
    kind        TEXT NOT NULL,
    question    TEXT NOT NULL,
    best_guess  TEXT NOT NULL,
    options     TEXT NOT NULL,
    reason      TEXT NOT NULL,
    answer      TEXT,
    answered_at TEXT,
    raised      TEXT NOT NULL DEFAULT '{}',
    call_key    TEXT NOT NULL DEFAULT '',
    is_applied  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX decisions_by_task ON decisions (task);

CREATE TABLE calls (
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
) STRICT;

CREATE TABLE approvals (
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
) STRICT;

CREATE TABLE replies (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    iteration  INTEGER NOT NULL CHECK (iteration >= 0),
    number     INTEGER NOT NULL CHECK (number >= 0),
    reply      BLOB NOT NULL,
    PRIMARY KEY (session_id, iteration, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE spendings (
    id                INTEGER PRIMARY KEY,
    run_id            TEXT NOT NULL REFERENCES runs (id),
    task              TEXT NOT NULL,
    purpose           TEXT NOT NULL,
    model             TEXT NOT NULL,
    is_settled        INTEGER NOT NULL DEFAULT 0,
    prompt_tokens     INTEGER NOT NULL CHECK (prompt_tokens >= 0),
    completion_tokens INTEGER NOT NULL DEFAULT 0 CHECK (completion_tokens >= 0),
    micro_usd         INTEGER NOT NULL CHECK (micro_usd >= 0)
) STRICT;
CREATE INDEX spendings_by_task ON spendings (run_id, task);

CREATE TABLE pins (
    scope   TEXT NOT NULL,
    name    TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdicts (
    tree       TEXT NOT NULL,
    check_name TEXT NOT NULL,
    command    TEXT NOT NULL,
    result     TEXT NOT NULL,
    PRIMARY KEY (tree, check_name, command)
) STRICT, WITHOUT ROWID;
