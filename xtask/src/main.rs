//! The project's own chores, run as `cargo xtask NAME`: they set up a development machine and run checks, tests and benchmarks that
//! lie elsewhere.
#![forbid(unsafe_code)]

mod android;
mod archive;
mod attack;
mod bench;
mod capi;
mod ci;
mod clock;
mod demo;
mod dist;
mod fuzz;
mod header;
mod java;
mod kotlin;
mod linked;
mod mutate;
mod part;
mod platform;
mod plugins;
mod prebuilt;
mod process;
mod python;
mod setup;
mod shaders;
mod shell;
mod steps;
mod swiftshader;
mod test;
mod tools;
mod tune;
mod wheel;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Chores of the Halite repository.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Set up a Vulkan driver if there is none, build, and run a small real network.
    Demo,
    /// Set up, then run all tests on every Vulkan driver at hand.
    Test(test::Options),
    /// Format, spelling, lints, other systems, documentation, tests: what has to pass before a change lands.
    Ci(ci::Options),
    /// Take one of the steps that `ci` and `test` take beside others, by itself.
    #[command(subcommand)]
    Part(part::Part),
    /// Install or find what tests need: a Vulkan loader, Mesa's llvmpipe, SwiftShader, the validation layer, a C compiler.
    Setup,
    /// Fetch SwiftShader, a Vulkan driver for the processor, to where Halite finds it; nothing is installed.
    Swiftshader(swiftshader::Options),
    /// Run the fuzz targets for a while each.
    Fuzz(fuzz::Options),
    /// Read hostile files by the thousand, and run the tests that attack plug-ins, caches and devices.
    Attack(attack::Options),
    /// Put faults into the code, one at a time, and see that some test notices each.
    Mutate(mutate::Options),
    /// Make the C headers (plugin/include/halite/driver.h, capi/include/halite/halite.h) from the Rust definitions, or check that they
    /// are current.
    Header(header::Options),
    /// Build libhalite, the library for C and C++, and install it with its headers and packages; or check it with examples.
    C(capi::Options),
    /// Build for Windows or 64-bit ARM, and run the program and the suites there under Wine or qemu.
    Platform(platform::Options),
    /// Build for Android: the program, libhalite.so with the C and Java interfaces, and an AAR for apps.
    Android(android::Options),
    /// Build the Java interface: halite.jar and the native library; or test it on a desktop virtual machine.
    Java(java::Options),
    /// Build the driver plug-ins and put them beside the executables or into a folder.
    Plugins(plugins::Options),
    /// Make packages: archives, Debian packages, a wheel, checksums, a list of what is in them; or lay out tools and plug-ins as they
    /// are installed (--plugins).
    Dist(dist::Options),
    /// Build a wheel of the Python package. Needs Python 3.9 or newer; fetches maturin and Zig's linker from PyPI.
    Wheel(wheel::Options),
    /// Compile the kernel templates, or check that the kept kernels are what they give. Needs a C++ compiler.
    Shaders(shaders::Options),
    /// Compare speed, start-up and memory with IREE's own runtime; or measure the kernel library with `bench kernels`.
    Bench(bench::Options),
    /// Measure the kernels' variants on a device, for this machine's choice of kernels; prints rows for shaders/tuning.json.
    Tune(tune::Options),
}

fn main() -> Result<()> {
    match Cli::parse().chore {
        Chore::Demo => demo::run(),
        Chore::Test(options) => test::run(&options),
        Chore::Ci(options) => ci::run(&options),
        Chore::Part(part) => part::run(&part),
        Chore::Setup => setup::everything().map(drop),
        Chore::Swiftshader(options) => swiftshader::fetch_and_tell(&options),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Attack(options) => attack::run(&options),
        Chore::Mutate(options) => mutate::run(&options),
        Chore::Header(options) => header::run(&options),
        Chore::C(options) => capi::run(&options),
        Chore::Platform(options) => platform::run(&options),
        Chore::Android(options) => android::run(&options),
        Chore::Java(options) => java::run(&options),
        Chore::Plugins(options) => plugins::run(&options),
        Chore::Dist(options) => dist::run(&options),
        Chore::Wheel(options) => wheel::run(&options),
        Chore::Shaders(options) => shaders::run(&options),
        Chore::Bench(options) => bench::run(&options),
        Chore::Tune(options) => tune::run(&options),
    }
}
