//! The operations that are measured when none is named: the list in `bench/kernels.txt`.

use halite_ops::Operation;
use halite_targets::Capabilities;

const LIST: &str = include_str!("../../kernels.txt");

/// How large shapes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For processors.
    Cpu,
    /// For GPUs.
    Gpu,
}

impl Size {
    /// The one for a device.
    pub fn of(target: &Capabilities) -> Size {
        if target.target.is_processor() { Size::Cpu } else { Size::Gpu }
    }

    /// Bytes of the copy that stands for memory: more than caches hold.
    pub fn copy_bytes(self) -> u64 {
        match self {
            Size::Cpu => 64 << 20,
            Size::Gpu => 512 << 20,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Size::Cpu => "cpu",
            Size::Gpu => "gpu",
        }
    }
}

/// The operations of the list for a size. An operation that the list forgets has the largest of its samples in it, of each
/// signature.
///
/// # Errors
/// Names the line that is no operation.
pub fn defaults(size: Size) -> Result<Vec<Operation>, String> {
    let all = parse(LIST)?;
    let mut chosen: Vec<Operation> =
        all.iter().filter(|(s, _)| s.is_none_or(|s| s == size)).map(|(_, o)| o.clone()).collect();
    for name in Operation::NAMES {
        if all.iter().all(|(_, listed)| listed.name() != *name) {
            chosen.extend(largest_samples(name));
        }
    }
    Ok(chosen)
}

/// Lines are `cpu OPERATION`, `gpu OPERATION` or `all OPERATION`; `#` begins a comment.
fn parse(text: &str) -> Result<Vec<(Option<Size>, Operation)>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &str| {
        let (word, operation) = line.split_once(' ').ok_or_else(|| format!("'{line}' has no operation"))?;
        let size = [Size::Cpu, Size::Gpu].into_iter().find(|size| size.word() == word);
        if size.is_none() && word != "all" {
            return Err(format!("'{line}' begins with none of cpu, gpu, all"));
        }
        Ok((size, halite_shaders::parse(operation.trim()).map_err(|e| e.to_string())?))
    };
    lines.map(read).collect()
}

fn largest_samples(name: &str) -> Vec<Operation> {
    let mut largest: Vec<Operation> = Vec::new();
    for sample in Operation::samples(name) {
        match largest.iter_mut().find(|other| other.signature() == sample.signature()) {
            Some(other) if other.work().bytes < sample.work().bytes => *other = sample,
            Some(_) => {}
            None => largest.push(sample),
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use halite_shaders::{Tuning, rank};
    use halite_targets::Target;

    use super::*;

    #[test]
    fn the_list_is_read_and_no_operation_is_forgotten() {
        for size in [Size::Cpu, Size::Gpu] {
            let chosen = defaults(size).expect("the list is right");
            for name in Operation::NAMES {
                assert!(chosen.iter().any(|o| o.name() == *name), "{name}");
            }
        }
    }

    #[test]
    fn every_line_can_run_on_devices_of_its_size() {
        let gpus = ["valhall-g78-android30", "rdna1-5700xt-linux", "hopper-h200-linux"];
        for (size, triples) in [(Size::Cpu, &["cpu-swiftshader-unknown"][..]), (Size::Gpu, &gpus[..])] {
            for (operation, triple) in defaults(size)
                .expect("the list is right")
                .iter()
                .flat_map(|operation| triples.iter().map(move |triple| (operation, *triple)))
            {
                let target = Capabilities::of(Target::parse(triple).expect("the triple is known"));
                assert_eq!(Size::of(&target), size, "{triple}");
                let ranked = rank(operation, &target, Tuning::shipped());
                assert!(ranked.iter().any(|c| c.plan().is_some()), "{operation} on {triple}");
            }
        }
    }

    #[test]
    fn wrong_lines_are_named() {
        assert!(parse("tpu matmul:m=1,n=1,k=1").unwrap_err().contains("tpu"));
        assert!(parse("gpu").unwrap_err().contains("no operation"));
        assert!(parse("# only a comment\n\n").unwrap().is_empty());
    }
}
