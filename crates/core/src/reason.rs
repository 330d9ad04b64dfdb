//! Reason codes: why a policy decided as it did.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)+) => {
        $($(#[$doc])* pub const $name: u16 = $code;)+

        /// Every known code with its name and meaning.
        pub const ALL: &[(u16, &str, &str)] = &[$(($code, stringify!($name), $text)),+];
    };
}

reasons! {
    UNKNOWN = 0, "No reason was given.";
    SCHEMA_OK = 100, "The output matches the schema.";
    SCHEMA_INVALID = 101, "The output does not match the schema.";
    CONFIDENCE_TOO_LOW = 102, "A threshold on `confidence` is not met.";
    OUTPUT_TOO_LARGE = 103, "The output is longer than `max_len`.";
    CHECK_SUMMARY_MISSING = 104, "The output has no `check_summary`.";
    SCORE_TOO_LOW = 105, "The score is below `min_score`.";
    EVIDENCE_UNREACHABLE = 200, "Evidence could not be reached.";
    EVIDENCE_TIMEOUT = 201, "Evidence did not arrive in time.";
    EVIDENCE_AUTH_DENIED = 202, "Access to evidence was denied.";
    EVIDENCE_DIGEST_MISMATCH = 203, "Evidence does not have the declared digest.";
    TASK_TIMEOUT = 300, "The task ran out of time.";
    INVALID_OUTPUT = 301, "The output is not valid.";
    TASK_EXPIRED = 302, "The task expired.";
    RUNTIME_CRASH = 303, "The executor crashed.";
    CUSTOM_ERROR = 999, "An error described by the executor.";
    THRESHOLD_NOT_MET = 1000, "A threshold in `policy_params.thresholds` is not met.";
    THRESHOLD_FIELD_MISSING = 1001, "A field named by a threshold is missing or not comparable.";
    CROSSCHECK_CONSISTENT = 1010, "The output agrees with the majority of the references.";
    CROSSCHECK_INCONSISTENT = 1011, "The output contradicts the majority of the references.";
    CROSSCHECK_EMPTY = 1012, "There are no references to compare the output with.";
    CROSSCHECK_SPLIT = 1013, "The references do not agree among themselves.";
    CLAIM_FALSE = 1020, "The claim is judged false, or irrelevant in its context.";
    CLAIM_UNDECIDED = 1021, "The claim could not be decided.";
    JUDGE_FAILED = 1030, "The judge did not give a usable answer.";
    EVALUATION_REFUSED = 1040, "The check would exceed the work limits.";
    CHECK_SCHEMA_FAILED = 1050, "A part of the output does not match the schema of a check.";
    CHECK_REQUIRED_MISSING = 1051, "A member that a check requires is missing or null.";
    CHECK_COUNT_WRONG = 1052, "A list or an object has too few or too many entries for a check.";
    CHECK_OUT_OF_BOUNDS = 1053, "A number is outside the bounds of a check.";
    CHECK_PATTERN_FAILED = 1054, "A string does not match the pattern of a check, or matches one that it must not.";
    CHECK_SET_DIFFERS = 1055, "A list does not contain the values that a check requires.";
    CHECK_HASH_DIFFERS = 1056, "A value does not have the hash that a check requires.";
    CHECK_CEL_FALSE = 1057, "The expression of a check is false.";
    CHECK_CEL_ERROR = 1058, "The expression of a check cannot be evaluated on this output.";
    CHECK_VALUE_UNUSABLE = 1059, "The value to check is missing or has the wrong type.";
    CRITERION_NOT_MET = 1070, "The judge finds that the verifier's criterion is not met.";
    CRITERION_UNCONFIRMED = 1071, "The judge can neither confirm nor deny the criterion.";
    CRITERION_CONFLICTING = 1072, "The judge finds evidence both for and against the criterion.";
    CRITERION_UNFIT = 1073, "The output lacks the content that the verifier judges, or has it in an unsupported form.";
}

/// Whether these codes make an evaluation without a status inconclusive.
pub fn is_inconclusive(codes: &[u16]) -> bool {
    codes
        .iter()
        .any(|code| matches!(*code, EVIDENCE_UNREACHABLE | EVIDENCE_TIMEOUT | EVIDENCE_AUTH_DENIED))
}
