//! The `run-module` tool: see [`halite_tools::run`].

fn main() -> std::process::ExitCode {
    halite_tools::run::main()
}
