//! The `kernels` tool: see [`halite_tools::kernels`].

fn main() -> std::process::ExitCode {
    halite_tools::kernels::main()
}
