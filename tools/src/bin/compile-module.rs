//! The `compile-module` binary.

fn main() -> std::process::ExitCode {
    halite_tools::compile::main()
}
