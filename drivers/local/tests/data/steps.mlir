// A loop on the host around work on the device, with a dynamic shape: several submissions for one call.
func.func @main(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>, %steps: i32) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = arith.index_cast %steps : i32 to index
  %rows = tensor.dim %x, %c0 : tensor<?x16xf32>
  %result = scf.for %i = %c0 to %n step %c1 iter_args(%now = %x) -> (tensor<?x16xf32>) {
    %empty = tensor.empty(%rows) : tensor<?x16xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x16xf32>) -> tensor<?x16xf32>
    %next = linalg.matmul ins(%now, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%zeros : tensor<?x16xf32>)
        -> tensor<?x16xf32>
    scf.yield %next : tensor<?x16xf32>
  }
  return %result : tensor<?x16xf32>
}
