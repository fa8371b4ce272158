-- .local/recall.db: an index of the repository's files and of earlier runs, for recall. All of it
-- follows from them: it may be deleted while nothing runs, and is made again on any doubt.
--
--   documents  what was taken in as one: a file, a run
--   passages   the pieces of a document; digest is the SHA-256 of the text
--   words      full text; a row a passage, under the same number
--   vectors    embeddings by digest, so that equal texts are embedded once

CREATE TABLE documents (
    key     TEXT PRIMARY KEY,
    version TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE passages (
    id     INTEGER PRIMARY KEY,
    key    TEXT NOT NULL REFERENCES documents (key),
    source TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;
CREATE INDEX passages_by_key ON passages (key);
CREATE INDEX passages_by_digest ON passages (digest);

CREATE VIRTUAL TABLE words USING fts5 (
    source, parts, text, tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE vectors (
    model  TEXT NOT NULL,
    digest TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (model, digest)
) STRICT, WITHOUT ROWID;
