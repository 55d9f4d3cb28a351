//! Native executables: a library in a mapped image, read with suspicion, and calls of its functions.
//!
//! What the library's tables say is checked: version, counts, and that every pointer leads into its own image. What
//! its code does cannot be checked; running it is trusting it (`native_code=off` does not).

use std::{
    ffi::{c_int, c_void},
    ops::Range,
    ptr,
};

use halite_abi::{Result, ResultExt, bail, status};
use halite_hal::{ExecutableDesc, FunctionInfo};

use crate::{
    abi::{self, DispatchFunction, DispatchState, Environment, WorkgroupState},
    code::{Call, Code, MAX_BINDINGS, MAX_CONSTANTS, Needs, Worker, workgroup_position},
    cpu,
    elf::image::Image,
    fpenv::DefaultEnvironment,
};

/// Most functions, imports and constants of a library: more than any compiler writes into one file.
const MAX_ENTRIES: u32 = 1 << 16;
/// Longest name that is read.
const MAX_NAME: usize = 4096;

/// A loaded library.
#[derive(Debug)]
pub(crate) struct NativeCode {
    functions: Vec<FunctionInfo>,
    entries: Vec<Entry>,
    environment: Box<Environment>,
    /// What the environment points to.
    _constants: Box<[u32]>,
    _imports: Box<[usize]>,
    /// Last: nothing that points into it may outlive it.
    _image: Image,
}

/// What a call of a function takes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    function: DispatchFunction,
    needs: Needs,
    workgroup_size: [u32; 3],
}

// SAFETY: the environment's pointers lead to memory that the value owns and nobody changes.
unsafe impl Send for NativeCode {}
// SAFETY: as above; the interface requires that functions may be called by several threads at once.
unsafe impl Sync for NativeCode {}

impl NativeCode {
    /// Maps the code of an executable and reads what it exports.
    ///
    /// # Errors
    /// As [`Image::load`]; INCOMPATIBLE for another interface version or for code with a sanitizer, NOT_FOUND for an
    /// import, INVALID_ARGUMENT for tables that lead nowhere or constants that do not fit.
    pub fn load(desc: &ExecutableDesc) -> Result<Self> {
        let image = Image::load(&desc.data, abi::QUERY_SYMBOL)?;
        let constants: Box<[u32]> = desc.constants.clone().into();
        // SAFETY: the symbol is code of the image, and by its name a function of this type.
        let query: abi::Query = unsafe { std::mem::transmute(image.query()) };
        let mut environment = Box::new(Environment {
            constants: constants.as_ptr(),
            import_thunk: no_import,
            import_functions: ptr::null(),
            import_contexts: ptr::null(),
            processor: cpu::processor_data(),
        });
        // SAFETY: the environment outlives the call.
        let library = unsafe { query(abi::VERSION, &raw const *environment) };
        if library.is_null() {
            bail!(Incompatible, "the code does not know version {} of the library interface", abi::VERSION);
        }
        let reader = Reader { image: &image, address: library.addr() as u64 };
        let table = Table::new(&reader)?;
        if table.constant_count as usize != constants.len() {
            bail!(
                InvalidArgument,
                "the code takes {} specialization constants, {} are given",
                table.constant_count,
                constants.len()
            );
        }
        // One array of null pointers serves as functions and as contexts.
        let imports: Box<[usize]> = vec![0; table.check_imports(&image)?].into();
        environment.import_functions = imports.as_ptr().cast();
        environment.import_contexts = imports.as_ptr().cast();
        let (functions, entries) = table.exports(&image)?;
        Ok(NativeCode {
            functions,
            entries,
            environment,
            _constants: constants,
            _imports: imports,
            _image: image,
        })
    }
}

/// Imports are all missing; code that calls one all the same is told so.
unsafe extern "C" fn no_import(_: *const c_void, _: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    1
}

/// Reads fields of one of the library's structs.
struct Reader<'a> {
    image: &'a Image,
    address: u64,
}

impl Reader<'_> {
    fn bytes(&self, offset: usize, length: usize) -> Result<Vec<u8>> {
        let address = self.address.checked_add(offset as u64);
        let address =
            address.ok_or_else(|| status!(InvalidArgument, "a pointer leads beyond all addresses"))?;
        self.image.bytes_at(address, length)
    }

    fn u64(&self, offset: usize) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes(offset, 8)?.try_into().expect("eight bytes were asked for")))
    }

    fn u32(&self, offset: usize) -> Result<u32> {
        Ok(u32::from_le_bytes(self.bytes(offset, 4)?.try_into().expect("four bytes were asked for")))
    }

    fn u16(&self, offset: usize) -> Result<u16> {
        Ok(u16::from_le_bytes(self.bytes(offset, 2)?.try_into().expect("two bytes were asked for")))
    }

    /// A count that nobody exaggerates.
    fn count(&self, offset: usize, what: &str) -> Result<u32> {
        match self.u32(offset)? {
            count @ ..=MAX_ENTRIES => Ok(count),
            count => bail!(InvalidArgument, "the library says that it has {count} {what}"),
        }
    }

    /// The struct behind a pointer that must not be null.
    fn follow(&self, offset: usize, what: &str) -> Result<Self> {
        match self.u64(offset)? {
            0 => bail!(InvalidArgument, "the library has no {what}"),
            address => Ok(Reader { image: self.image, address }),
        }
    }
}

/// The library's top struct, its header checked.
struct Table<'a> {
    library: &'a Reader<'a>,
    constant_count: u32,
}

impl<'a> Table<'a> {
    fn new(library: &'a Reader<'a>) -> Result<Self> {
        library.bytes(0, abi::library::SIZE).context(|| "library")?;
        let header = library.follow(abi::library::HEADER, "header")?;
        header.bytes(0, abi::header::SIZE).context(|| "library header")?;
        let version = header.u32(abi::header::VERSION)?;
        if version != abi::VERSION {
            bail!(Incompatible, "the library has interface version {version}, expected {}", abi::VERSION);
        }
        match header.u32(abi::header::SANITIZER)? {
            0 => {}
            kind => bail!(
                Incompatible,
                "the code was compiled with sanitizer kind {kind} (1 address, 2 memory, 3 thread, 4 undefined \
                 behaviour), which has to be in the process; compile it without"
            ),
        }
        match header.u32(abi::header::FEATURES)? {
            0 => {}
            bits => bail!(Incompatible, "the code needs unknown features {bits:#x} of the library interface"),
        }
        let constant_count = library.count(abi::library::CONSTANT_COUNT, "constants")?;
        Ok(Table { library, constant_count })
    }

    /// Number of imports; all have to be optional.
    fn check_imports(&self, image: &Image) -> Result<usize> {
        let count = self.library.count(abi::library::IMPORT_COUNT, "imports")?;
        if count == 0 {
            return Ok(0);
        }
        let symbols = self.library.follow(abi::library::IMPORT_SYMBOLS, "names of imports")?;
        for index in 0..count as usize {
            // A null pointer is an import that was optimised away.
            let address = symbols.u64(index * 8)?;
            if address == 0 {
                continue;
            }
            let name = image.text_at(address, MAX_NAME).context(|| format!("import {index}"))?;
            if !name.starts_with('?') {
                bail!(NotFound, "the code imports '{name}'; the CPU driver provides no imports");
            }
        }
        Ok(count as usize)
    }

    fn exports(&self, image: &Image) -> Result<(Vec<FunctionInfo>, Vec<Entry>)> {
        let count = self.library.count(abi::library::EXPORT_COUNT, "functions")? as usize;
        let (mut functions, mut entries) = (Vec::new(), Vec::new());
        if count == 0 {
            return Ok((functions, entries));
        }
        let pointers = self.library.follow(abi::library::EXPORT_FUNCTIONS, "table of functions")?;
        let attributes = self.library.follow(abi::library::EXPORT_ATTRIBUTES, "table of attributes")?;
        let names = self.library.u64(abi::library::EXPORT_NAMES)?;
        for index in 0..count {
            let describe = || format!("function {index}");
            let offset = (index * abi::attributes::SIZE) as u64;
            let attributes = Reader { image, address: attributes.address.saturating_add(offset) };
            let (info, entry) = export(image, pointers.u64(index * 8)?, &attributes).context(describe)?;
            let name = match names {
                0 => 0,
                address => Reader { image, address }.u64(index * 8).context(describe)?,
            };
            let name = match name {
                0 => format!("function_{index}"),
                address => image.text_at(address, MAX_NAME).context(describe)?,
            };
            functions.push(FunctionInfo { name, ..info });
            entries.push(entry);
        }
        Ok((functions, entries))
    }
}

fn export(image: &Image, pointer: u64, attributes: &Reader<'_>) -> Result<(FunctionInfo, Entry)> {
    use abi::attributes as at;
    let code = image.code_at(pointer)?;
    // SAFETY: the address is code of the image, and the table says that it is a function of this type.
    let function: DispatchFunction = unsafe { std::mem::transmute(code) };
    let bytes = attributes.bytes(0, at::SIZE)?;
    let (constants, bindings) = (bytes[at::CONSTANT_COUNT], bytes[at::BINDING_COUNT]);
    if constants as usize > MAX_CONSTANTS || bindings as usize > MAX_BINDINGS {
        bail!(
            InvalidArgument,
            "it takes {constants} constants and {bindings} bindings; the limit is 64 each"
        );
    }
    let flags = attributes.u64(at::FLAGS)?;
    let size = [
        attributes.u32(at::WORKGROUP_SIZE_X)?,
        attributes.u32(at::WORKGROUP_SIZE_Y)?,
        attributes.u16(at::WORKGROUP_SIZE_Z)?.into(),
    ];
    let open = flags & at::FLAG_WORKGROUP_SIZE_DYNAMIC != 0;
    let info = FunctionInfo {
        name: String::new(),
        binding_count: bindings.into(),
        constant_count: constants.into(),
        workgroup_size: if open { [0; 3] } else { size },
    };
    let local_memory = attributes.u16(at::LOCAL_MEMORY_PAGES)? as usize * abi::LOCAL_MEMORY_PAGE;
    let needs = Needs { local_memory, parallel: flags & at::FLAG_SEQUENTIAL == 0 };
    Ok((info, Entry { function, needs, workgroup_size: size.map(|n| n.max(1)) }))
}

/// What all workgroups of a call share. It points to what the call has.
fn dispatch_state(call: &Call<'_>, workgroup_size: [u32; 3], count_z: u16) -> DispatchState {
    let [size_x, size_y, size_z] = workgroup_size;
    DispatchState {
        workgroup_size_x: size_x,
        workgroup_size_y: size_y,
        workgroup_size_z: size_z as u16,
        constant_count: call.constants.len() as u16,
        workgroup_count_x: call.counts[0],
        workgroup_count_y: call.counts[1],
        workgroup_count_z: count_z,
        max_concurrency: u8::try_from(call.concurrency).unwrap_or(u8::MAX),
        binding_count: call.bindings.pointers.len() as u8,
        constants: call.constants.as_ptr(),
        binding_pointers: call.bindings.pointers.as_ptr(),
        binding_lengths: call.bindings.lengths.as_ptr(),
    }
}

impl Code for NativeCode {
    fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    fn needs(&self, function: usize) -> Needs {
        self.entries[function].needs
    }

    fn run(&self, call: &Call<'_>, workgroups: Range<u64>, worker: &mut Worker<'_>) -> Result<()> {
        let entry = &self.entries[call.function];
        let Ok(count_z) = u16::try_from(call.counts[2]) else {
            bail!(OutOfRange, "{} workgroups in z; native code can have 65535", call.counts[2]);
        };
        let dispatch = dispatch_state(call, entry.workgroup_size, count_z);
        let local = &mut worker.local_memory[..entry.needs.local_memory];
        let mut workgroup = WorkgroupState {
            workgroup_id_x: 0,
            workgroup_id_y: 0,
            workgroup_id_z: 0,
            reserved: 0,
            processor_id: worker.processor,
            local_memory: if local.is_empty() { ptr::null_mut() } else { local.as_mut_ptr() },
            local_memory_size: u32::try_from(local.len()).unwrap_or(u32::MAX),
        };
        let [mut x, mut y, mut z] = workgroup_position(call.counts, workgroups.start);
        let _environment = DefaultEnvironment::enter();
        for _ in workgroups {
            (workgroup.workgroup_id_x, workgroup.workgroup_id_y, workgroup.workgroup_id_z) = (x, y, z as u16);
            // SAFETY: the function was exported as one of this type by an image that lives as long as `self`. The
            // states describe live memory: bindings are ranges of buffers that the execution keeps, in number and
            // order as the attributes say; local memory is this worker's alone.
            let answer = unsafe { (entry.function)(&raw const *self.environment, &dispatch, &workgroup) };
            if answer != 0 {
                bail!(Internal, "workgroup {x},{y},{z} ended with code {answer}");
            }
            x += 1;
            if x == call.counts[0] {
                (x, y) = (0, y + 1);
                if y == call.counts[1] {
                    (y, z) = (0, z + 1);
                }
            }
        }
        Ok(())
    }
}
