// A variable that lives on the second device, and calls that use it from the first.
util.global private mutable @total {stream.affinity = #hal.device.promise<@d1>} = dense<0.0> : tensor<4xf32>
func.func @add(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.mulf %a, %a : tensor<4xf32>
  %1 = flow.tensor.transfer %0 : tensor<4xf32> to #hal.device.promise<@d1>
  %2 = util.global.load @total : tensor<4xf32>
  %3 = arith.addf %1, %2 : tensor<4xf32>
  util.global.store %3, @total : tensor<4xf32>
  %4 = flow.tensor.transfer %3 : tensor<4xf32> to #hal.device.promise<@d0>
  return %4 : tensor<4xf32>
}
func.func @add_twice(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = func.call @add(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @add(%b) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
