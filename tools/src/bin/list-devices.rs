//! The `list-devices` tool: see [`halite_tools::list`].

fn main() -> std::process::ExitCode {
    halite_tools::list::main()
}
