//! Stands in until the runtime has calls that return early.
use halite_runtime as runtime;

pub(crate) struct PendingCall(Vec<runtime::Value>);
impl PendingCall {
    pub fn is_done(&self) -> bool { true }
    pub fn wait(self, _: &runtime::CallOptions) -> runtime::Result<Vec<runtime::Value>> { Ok(self.0) }
}
pub(crate) trait Start {
    fn start(&self, args: &[runtime::Value], options: &runtime::CallOptions) -> runtime::Result<PendingCall>;
}
impl Start for runtime::Function {
    fn start(&self, args: &[runtime::Value], options: &runtime::CallOptions) -> runtime::Result<PendingCall> {
        Ok(PendingCall(self.call_with(args, options)?))
    }
}
pub(crate) trait Names { fn input_name(&self, _: usize) -> Option<&str> { None } fn output_name(&self, _: usize) -> Option<&str> { None } }
impl Names for runtime::FunctionInfo {}
pub(crate) trait Named { fn named_module(self, name: String, bytes: bytes::Bytes) -> Self; fn progress(self, p: std::sync::Arc<dyn Fn(&str, usize, usize)>) -> Self; }
impl Named for runtime::SessionBuilder { fn named_module(self, _: String, bytes: bytes::Bytes) -> Self { self.module_bytes(bytes) } fn progress(self, _: std::sync::Arc<dyn Fn(&str, usize, usize)>) -> Self { self } }
