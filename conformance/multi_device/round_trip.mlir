// A tensor goes from the first device to the second and back, while the first keeps another one.
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.mulf %a, %b : tensor<4xf32>
  %1 = flow.tensor.transfer %0 : tensor<4xf32> to #hal.device.promise<@d1>
  %2 = arith.addf %1, %1 : tensor<4xf32>
  %3 = flow.tensor.transfer %2 : tensor<4xf32> to #hal.device.promise<@d0>
  %4 = arith.subf %3, %a : tensor<4xf32>
  return %4 : tensor<4xf32>
}
