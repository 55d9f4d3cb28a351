//! The original's code for an operation: written as MLIR, compiled by `iree-compile` for its default Vulkan target, run
//! by this project's runtime on the device that kernels are measured on.

mod mlir;

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use halite_abi::ElementType;
use halite_hal::{BufferParams, BufferSpan, Device, Result, status};
use halite_ops::Operation;
use halite_runtime::{BufferView, CallOptions, Deadline, Encoding, Function, Session, Value};

use super::timing::{Clock, Pace, Side, Stopwatch};

pub use self::mlir::{Source, source};

/// A call that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);
/// Most runs of a dispatch in one call.
const MOST_REPEATS: u32 = 2_000;

/// The original's compiler.
#[derive(Clone, Debug)]
pub struct Compiler {
    program: PathBuf,
    version: String,
}

impl Compiler {
    /// The compiler at a path, or by its name on `PATH`.
    ///
    /// # Errors
    /// Says what is not there and where to get it.
    pub fn find(program: impl Into<PathBuf>) -> std::result::Result<Compiler, String> {
        let program = program.into();
        let advice =
            "the package iree-base-compiler of PyPI has iree-compile; --iree-compile names another place";
        let output = Command::new(&program)
            .arg("--version")
            .output()
            .map_err(|e| format!("{}: {e}; {advice}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version =
            text.lines().map(str::trim).find(|line| line.contains("compiler version")).map(str::to_owned);
        match version.filter(|_| output.status.success()) {
            Some(version) => Ok(Compiler { program, version }),
            None => Err(format!("{} --version says no version; {advice}", program.display())),
        }
    }

    /// Its version, as it tells it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Compiles a module in which each dispatch is done `repeat` times, with barriers between.
    fn compile(&self, text: &str, repeat: u32) -> std::result::Result<Vec<u8>, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.program.display());
        let mut child = Command::new(&self.program)
            .arg("--iree-hal-target-device=vulkan")
            .arg(format!("--iree-hal-benchmark-dispatch-repeat-count={repeat}"))
            .args(["-", "-o", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut input = child.stdin.take().ok_or("the compiler's input is not there")?;
        // It reads all before it writes. One that stopped early says why in its messages.
        let written = input.write_all(text.as_bytes());
        drop(input);
        let output = child.wait_with_output().map_err(failed)?;
        if !output.status.success() {
            return Err(format!("iree-compile: {}", complaint(&String::from_utf8_lossy(&output.stderr))));
        }
        written.map_err(failed)?;
        Ok(output.stdout)
    }
}

/// The first error of the compiler's messages, which go on with notes and whole programs.
fn complaint(messages: &str) -> String {
    let line = messages.lines().find(|line| line.contains("error:")).or_else(|| messages.lines().next());
    line.unwrap_or("failed without a message").trim().to_owned()
}

/// An operation in the original's code, with its inputs on a device.
#[derive(Debug)]
pub struct Original<'a> {
    compiler: &'a Compiler,
    device: Arc<dyn Device>,
    source: Source,
    arguments: Vec<Value>,
}

impl<'a> Original<'a> {
    /// Puts the inputs on the device.
    ///
    /// # Errors
    /// Inside: why the operation cannot be written for the compiler. Outside: errors of the device.
    pub fn new(
        compiler: &'a Compiler,
        device: &Arc<dyn Device>,
        operation: &Operation,
        inputs: &[Vec<u8>],
    ) -> Result<std::result::Result<Self, String>> {
        let source = match source(operation) {
            Ok(source) => source,
            Err(why) => return Ok(Err(why)),
        };
        let mut arguments = Vec::new();
        for ((tensor, shape), bytes) in operation.inputs().iter().zip(&source.inputs).zip(inputs) {
            let Ok(element_type) = tensor.dtype.name().parse::<ElementType>() else {
                return Ok(Err(format!("its runtime has no name for {}", tensor.dtype)));
            };
            let buffer = device.allocate_buffer(&BufferParams::DEVICE, (bytes.len() as u64).max(1))?;
            buffer.write(0, bytes)?;
            arguments.push(Value::View(BufferView {
                span: BufferSpan::whole(buffer),
                shape: shape.iter().copied().collect(),
                element_type,
                encoding: Encoding::DENSE_ROW_MAJOR,
            }));
        }
        Ok(Ok(Original { compiler, device: device.clone(), source, arguments }))
    }

    /// Compiles it; the error says why that is not possible, or why it does not load.
    fn load(&self, clock: Clock, repeat: u32) -> std::result::Result<Calls<'_>, String> {
        let module = self.compiler.compile(&self.source.text, repeat)?;
        let session = Session::builder().devices(vec![self.device.clone()]).module_bytes(module).build();
        let session = session.map_err(|e| e.to_string())?;
        let function = session.function("main").map_err(|e| e.to_string())?;
        Ok(Calls { _session: session, function, arguments: &self.arguments, clock, repeat })
    }

    /// Runs it once: the bytes of its result, and itself for timing, repeated until a call takes as long as a sample.
    ///
    /// # Errors
    /// Says why it does not compile or run.
    pub fn run(&self, pace: &Pace) -> std::result::Result<(Vec<u8>, Calls<'_>), String> {
        let told = |e: halite_hal::Status| e.to_string();
        let mut once = self.load(pace.clock, 1)?;
        let result = once.call().map_err(told)?;
        let bytes = result.span.read_all().map_err(told)?;
        let took = once.sample().map_err(told)?;
        let times = (pace.sample.as_secs_f64() * 1.2 / took.max(1e-9)).ceil();
        let repeat = times.clamp(1.0, f64::from(MOST_REPEATS)) as u32;
        // Results are those of one run: a kernel that adds to what is there would give others when it is repeated.
        Ok((bytes, if repeat > 1 { self.load(pace.clock, repeat)? } else { once }))
    }
}

/// A loaded module that can be timed.
#[derive(Debug)]
pub struct Calls<'a> {
    _session: Session,
    function: Function,
    arguments: &'a [Value],
    clock: Clock,
    repeat: u32,
}

impl Calls<'_> {
    fn call(&self) -> Result<BufferView> {
        let options = CallOptions { deadline: Deadline::after(LIMIT), ..CallOptions::default() };
        let results = self.function.call_with(self.arguments, &options);
        let results = results.map_err(|e| status!(Unknown, "the original's code: {e}"))?;
        let view = results.first().and_then(Value::as_view);
        view.cloned().ok_or_else(|| status!(Unknown, "the original's code returns no tensor"))
    }
}

impl Side for Calls<'_> {
    fn repeat(&self) -> u32 {
        self.repeat
    }

    fn sample(&mut self) -> Result<f64> {
        let start = Stopwatch::start(self.clock);
        self.call()?;
        Ok(start.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_not_there_is_named_with_advice() {
        let error = Compiler::find("no-such-compiler").unwrap_err();
        assert!(error.contains("no-such-compiler") && error.contains("PyPI"), "{error}");
        let error = Compiler::find("true").unwrap_err();
        assert!(error.contains("no version"), "{error}");
    }

    #[test]
    fn the_first_error_is_told() {
        let messages = "<stdin>:1:1: warning: a\n<stdin>:3:5: error: failed to legalize 'x'\n x\n ^\n";
        assert_eq!(complaint(messages), "<stdin>:3:5: error: failed to legalize 'x'");
        assert_eq!(complaint("killed\nb\n"), "killed");
        assert!(complaint("").contains("without"));
    }

    /// Needs the compiler on `PATH`; what it takes is what this writes.
    #[test]
    fn the_compiler_takes_what_is_written() {
        let Ok(compiler) = Compiler::find("iree-compile") else {
            eprintln!("skipped: no iree-compile on PATH");
            return;
        };
        let operations = [
            "matmul:m=8,n=16,k=4",
            "matmul:m=8,n=16,k=4,rhs_transposed=true,batch=2",
            "matmul:m=8,n=16,k=4,rhs_shared=true,batch=2",
            "matmul:m=8,n=16,k=4,lhs=i8,rhs=i8,out=i32",
            "conv2d:input=1x4x9x9,filter=6x4x3x3,strides=2x2,pads=1x1x1x1,bias=true,activation=relu6",
            "conv2d:input=1x4x9x9,filter=4x1x3x3,groups=4,pads=1x0x2x1",
            "conv2d:input=1x4x9x9,filter=6x2x3x3,groups=2,bias=true,activation=relu",
            "conv2d:input=1x9x9x4,filter=3x3x4x6,layout=nhwc,bias=true",
            "conv2d:input=1x9x9x4,filter=3x3x1x4,layout=nhwc,groups=4,pads=1x1x1x1",
        ];
        for text in operations {
            let source = source(&Operation::parse(text).expect("it is one")).expect("it has a text");
            let compiled = compiler.compile(&source.text, 2);
            assert!(compiled.is_ok(), "{text}: {compiled:?}\n{}", source.text);
        }
        let error = compiler.compile("func.func @main() -> i32 {", 1).unwrap_err();
        assert!(error.contains("error:"), "{error}");
    }
}
