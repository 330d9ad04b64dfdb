//! Finds the best matches for words: the database ranks the rows, so that only a few are read.

use jurat_core::workflow::search::MOST_WORDS;

use super::tx::SqlArg;

/// The score of one word in a row of a searched table.
macro_rules! word {
    ($table:literal, $pattern:literal) => {
        const_format::concatcp!(
            "case when ",
            $table,
            ".search_name like ",
            $pattern,
            " then 8 else 0 end + \
             case when ",
            $table,
            ".search_text like ",
            $pattern,
            " then 3 else 0 end + \
             case when ",
            $table,
            ".search_body like ",
            $pattern,
            " then 1 else 0 end"
        )
    };
}
pub(crate) use word;

/// The score of a row for the patterns `$2` to `$17`. No text matches a null pattern.
macro_rules! score {
    ($table:literal) => {
        const_format::concatcp!(
            $crate::db::search::word!($table, "$2"),
            " + ",
            $crate::db::search::word!($table, "$3"),
            " + ",
            $crate::db::search::word!($table, "$4"),
            " + ",
            $crate::db::search::word!($table, "$5"),
            " + ",
            $crate::db::search::word!($table, "$6"),
            " + ",
            $crate::db::search::word!($table, "$7"),
            " + ",
            $crate::db::search::word!($table, "$8"),
            " + ",
            $crate::db::search::word!($table, "$9"),
            " + ",
            $crate::db::search::word!($table, "$10"),
            " + ",
            $crate::db::search::word!($table, "$11"),
            " + ",
            $crate::db::search::word!($table, "$12"),
            " + ",
            $crate::db::search::word!($table, "$13"),
            " + ",
            $crate::db::search::word!($table, "$14"),
            " + ",
            $crate::db::search::word!($table, "$15"),
            " + ",
            $crate::db::search::word!($table, "$16"),
            " + ",
            $crate::db::search::word!($table, "$17")
        )
    };
}
pub(crate) use score;

/// The patterns of the words. A word has only letters and digits, so it contains no wildcard.
pub(crate) fn patterns(words: &[String]) -> impl Iterator<Item = SqlArg> {
    (0..MOST_WORDS).map(|place| SqlArg::Text(words.get(place).map(|word| format!("%{word}%"))))
}
