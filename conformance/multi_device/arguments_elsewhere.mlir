// Arguments and results that belong on the second device, wherever the caller has put them.
func.func @main(%a: tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@d1>}, %b: tensor<4xf32>)
    -> (tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@d1>}, tensor<4xf32>) {
  %0 = arith.addf %a, %a : tensor<4xf32>
  %1 = flow.tensor.transfer %0 : tensor<4xf32> to #hal.device.promise<@d0>
  %2 = arith.mulf %1, %b : tensor<4xf32>
  %3 = flow.tensor.transfer %2 : tensor<4xf32> to #hal.device.promise<@d1>
  %4 = arith.subf %3, %a : tensor<4xf32>
  return %4, %2 : tensor<4xf32>, tensor<4xf32>
}
