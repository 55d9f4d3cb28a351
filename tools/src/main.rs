//! The program `halite`, which is all tools: see [`halite_tools::cli`].
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    halite_tools::cli::main()
}
