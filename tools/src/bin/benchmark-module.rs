//! The `benchmark-module` tool: see [`halite_tools::bench`].

fn main() -> std::process::ExitCode {
    halite_tools::bench::main()
}
