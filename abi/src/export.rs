//! Names of exported functions that mean something.

/// Is called when the module is loaded.
pub const INIT: &str = "__init";
/// Is called when the module goes.
pub const DEINIT: &str = "__deinit";
/// What the names of functions begin with that are not for users.
pub const HIDDEN_PREFIX: &str = "__";
/// Stands in the names of functions that belong to another one, before what they are.
pub const PART_MARK: char = '$';
/// Ends the name of the function that does what the one without it does, but takes fences and returns early.
pub const ASYNC_SUFFIX: &str = "$async";
/// Ends the name of the function that makes the recordings which the one without it needs for certain sizes, each an `i64`: of each part of the work the
/// recording that there was, or null, and the one that there is now. It touches nothing else, so that it may run while a call is under way.
pub const RECORD_SUFFIX: &str = "$record";
/// The arguments that a function with [`ASYNC_SUFFIX`] takes after its own: the fence to wait for, and the fence to signal.
pub const FENCES: usize = 2;

/// Whether a function is for users: hidden ones and parts of others are not.
pub fn is_for_users(name: &str) -> bool {
    !name.starts_with(HIDDEN_PREFIX) && !name.contains(PART_MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_hooks_are_not_for_users() {
        assert!(is_for_users("main") && is_for_users("_main"));
        assert!(!is_for_users(INIT) && !is_for_users(DEINIT));
        assert!(!is_for_users(&format!("main{ASYNC_SUFFIX}")));
    }
}
