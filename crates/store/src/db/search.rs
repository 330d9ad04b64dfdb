//! Finds by words what fits best: rows are ranked where they lie, so that only a few are read.

use jurat_core::workflow::search::MOST_WORDS;

use super::tx::SqlArg;

/// What one word counts in a row of a table that is searched.
macro_rules! word {
    ($table:literal, $pattern:literal) => {
        concat!(
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

/// How well a row fits the patterns `$2` to `$17`. Nothing is like a pattern that is null.
macro_rules! score {
    ($table:literal) => {
        concat!(
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

/// The patterns of the words. A word has letters and digits only, so nothing in it is a wildcard.
pub(crate) fn patterns(words: &[String]) -> impl Iterator<Item = SqlArg> {
    (0..MOST_WORDS).map(|place| SqlArg::Text(words.get(place).map(|word| format!("%{word}%"))))
}
