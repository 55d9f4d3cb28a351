// Adds two tensors, in several workgroups.
func.func @main(%a: tensor<100x512xf32>, %b: tensor<100x512xf32>) -> tensor<100x512xf32> {
  %sum = arith.addf %a, %b : tensor<100x512xf32>
  return %sum : tensor<100x512xf32>
}
