// A loop whose body runs on both devices: the number of crossings is known only at run time, and so is the shape.
func.func @main(%a: tensor<?xf32>, %times: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %times step %c1 iter_args(%x = %a) -> (tensor<?xf32>) {
    %d = tensor.dim %x, %c0 : tensor<?xf32>
    %0 = arith.mulf %x, %x : tensor<?xf32>
    %1 = flow.tensor.transfer %0 : tensor<?xf32>{%d} to #hal.device.promise<@d1>
    %2 = arith.addf %1, %1 : tensor<?xf32>
    %3 = flow.tensor.transfer %2 : tensor<?xf32>{%d} to #hal.device.promise<@d0>
    scf.yield %3 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
