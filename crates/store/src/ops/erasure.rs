//! The SQL that erases the texts of rounds and replicas, and keeps their labels and codes.

use const_format::concatcp;

const NOTHING_SAID: &str = "\
    {\"score\":null,\"reason_codes\":[],\"evidence_inline\":[],\"evidence_refs\":[],\
    \"result_hash\":null,\"notes\":[]}";

/// The answer of a replica after its texts are erased: the label and the code of a failure, which
/// are columns, stay. `AnswerDocument::erased` produces the same for a round that ends later.
pub(crate) const ERASED_ANSWER: &str = concatcp!(
    "case when failure is not null then '{\"nothing\":{\"detail\":\"erased\",\"said\":null}}' \
     when label in ('RETRY', 'NEEDS_SPEC') then '{\"abstained\":",
    NOTHING_SAID,
    "}' else '{\"vote\":",
    NOTHING_SAID,
    "}' end"
);

// PostgreSQL refuses to parse a document that has a NUL in a text. Only texts that are erased
// contain one.
const WITHOUT_NUL: &str = r", '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g')::json";
pub(crate) const READABLE_CONSENSUS: &str =
    concatcp!("regexp_replace(rounds.consensus", WITHOUT_NUL);
pub(crate) const READABLE_SPEC: &str = concatcp!("regexp_replace(spec", WITHOUT_NUL);
pub(crate) const READABLE_DOCUMENT: &str = concatcp!("regexp_replace(document", WITHOUT_NUL);

/// The document of a replica without its notes, its inline evidence and its failure's detail.
pub(crate) const WITHOUT_WORDS_SQLITE: &str = "\
    json_replace(document, '$.answer.vote.notes', json('[]'), \
    '$.answer.vote.evidence_inline', json('[]'), '$.answer.abstained.notes', json('[]'), \
    '$.answer.abstained.evidence_inline', json('[]'), '$.answer.nothing.detail', 'erased', \
    '$.answer.nothing.said.notes', json('[]'), \
    '$.answer.nothing.said.evidence_inline', json('[]'))";
pub(crate) const WITHOUT_WORDS_POSTGRES: &str = concatcp!(
    "jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set(",
    READABLE_DOCUMENT,
    "::jsonb, '{answer,vote,notes}', '[]', false), \
     '{answer,vote,evidence_inline}', '[]', false), \
     '{answer,abstained,notes}', '[]', false), \
     '{answer,abstained,evidence_inline}', '[]', false), \
     '{answer,nothing,detail}', '\"erased\"', false), \
     '{answer,nothing,said,notes}', '[]', false), \
     '{answer,nothing,said,evidence_inline}', '[]', false)::text"
);
