//! The `dump-module` tool: see [`halite_tools::dump`].

fn main() -> std::process::ExitCode {
    halite_tools::dump::main()
}
