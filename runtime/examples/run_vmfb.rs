//! Runs a function of a module: `run_vmfb MODULE.vmfb FUNCTION [INPUT…]`, inputs as for `--input` of IREE's tools,
//! such as `4xf32=1,2,3,4` or `@input.npy`. Runs on the best device there is.

use halite_runtime::{
    Session, Value,
    tensor::{ArgumentKind, InputReader},
};
use halite_vulkan as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(module), Some(name)) = (args.next(), args.next()) else {
        return Err("usage: run_vmfb MODULE.vmfb FUNCTION [INPUT…]".into());
    };
    let session = Session::builder().module_file(module).build()?;
    let function = session.function(&name)?;
    println!("{}", function.info().describe());

    let kinds: Vec<_> = function.info().input_kinds().iter().map(|k| ArgumentKind::from(*k)).collect();
    let inputs = InputReader::new().read_all(&args.collect::<Vec<_>>(), &kinds)?;
    let inputs = inputs
        .iter()
        .map(|input| Value::from_host(session.device(), input))
        .collect::<Result<Vec<_>, _>>()?;
    for (i, result) in function.call(&inputs)?.iter().enumerate() {
        match result {
            Value::View(view) => println!("result[{i}]: {}", view.to_host()?.display(1024)),
            other => println!("result[{i}]: {other:?}"),
        }
    }
    Ok(())
}
