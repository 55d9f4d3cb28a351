// One function for each microkernel of IREE's `vmvx` module, and matrix products in tiles. Transpositions are left out:
// the compiler's calls for them reach beyond their operands, and the original fails too.
func.func @abs(%a0: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0: tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %o: f32):
    %s = math.absf %x0 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @ceil(%a0: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0: tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %o: f32):
    %s = math.ceil %x0 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @exp(%a0: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0: tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %o: f32):
    %s = math.exp %x0 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @floor(%a0: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0: tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %o: f32):
    %s = math.floor %x0 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @log(%a0: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0: tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %o: f32):
    %s = math.log %x0 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @neg(%a0: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0: tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %o: f32):
    %s = arith.negf %x0 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @rsqrt(%a0: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0: tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %o: f32):
    %s = math.rsqrt %x0 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @ctlz(%a0: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0: tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %o: i32):
    %s = math.ctlz %x0 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @addf(%a0: tensor<?x7xf32>, %a1: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xf32>, tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %x1: f32, %o: f32):
    %s = arith.addf %x0, %x1 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @subf(%a0: tensor<?x7xf32>, %a1: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xf32>, tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %x1: f32, %o: f32):
    %s = arith.subf %x0, %x1 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @mulf(%a0: tensor<?x7xf32>, %a1: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xf32>, tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %x1: f32, %o: f32):
    %s = arith.mulf %x0, %x1 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @divf(%a0: tensor<?x7xf32>, %a1: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xf32>
  %e = tensor.empty(%d) : tensor<?x7xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xf32>, tensor<?x7xf32>) outs(%e: tensor<?x7xf32>) {
  ^bb0(%x0: f32, %x1: f32, %o: f32):
    %s = arith.divf %x0, %x1 : f32
    linalg.yield %s : f32
  } -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}
func.func @addi(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.addi %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @subi(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.subi %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @muli(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.muli %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @divsi(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.divsi %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @divui(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.divui %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @andi(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.andi %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @ori(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.ori %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @xori(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.xori %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @shli(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.shli %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @shrsi(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.shrsi %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @shrui(%a0: tensor<?x7xi32>, %a1: tensor<?x7xi32>) -> tensor<?x7xi32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x7xi32>
  %e = tensor.empty(%d) : tensor<?x7xi32>
  %r = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a0, %a1: tensor<?x7xi32>, tensor<?x7xi32>) outs(%e: tensor<?x7xi32>) {
  ^bb0(%x0: i32, %x1: i32, %o: i32):
    %s = arith.shrui %x0, %x1 : i32
    linalg.yield %s : i32
  } -> tensor<?x7xi32>
  return %r : tensor<?x7xi32>
}
func.func @copy8(%a: tensor<3x7xi8>, %b: tensor<5x7xi8>) -> tensor<8x7xi8> {
  %r = tensor.concat dim(0) %a, %b : (tensor<3x7xi8>, tensor<5x7xi8>) -> tensor<8x7xi8>
  return %r : tensor<8x7xi8>
}
func.func @copy16(%a: tensor<3x7xi16>, %b: tensor<5x7xi16>) -> tensor<8x7xi16> {
  %r = tensor.concat dim(0) %a, %b : (tensor<3x7xi16>, tensor<5x7xi16>) -> tensor<8x7xi16>
  return %r : tensor<8x7xi16>
}
func.func @copy32(%a: tensor<3x7xi32>, %b: tensor<5x7xi32>) -> tensor<8x7xi32> {
  %r = tensor.concat dim(0) %a, %b : (tensor<3x7xi32>, tensor<5x7xi32>) -> tensor<8x7xi32>
  return %r : tensor<8x7xi32>
}
func.func @copy64(%a: tensor<3x7xi64>, %b: tensor<5x7xi64>) -> tensor<8x7xi64> {
  %r = tensor.concat dim(0) %a, %b : (tensor<3x7xi64>, tensor<5x7xi64>) -> tensor<8x7xi64>
  return %r : tensor<8x7xi64>
}
func.func @matf(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%z: f32) outs(%e: tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b: tensor<?x?xf32>, tensor<?x?xf32>) outs(%f: tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @mati(%a: tensor<?x?xi8>, %b: tensor<?x?xi8>) -> tensor<?x?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xi8>
  %n = tensor.dim %b, %c1 : tensor<?x?xi8>
  %z = arith.constant 0 : i32
  %e = tensor.empty(%m, %n) : tensor<?x?xi32>
  %f = linalg.fill ins(%z: i32) outs(%e: tensor<?x?xi32>) -> tensor<?x?xi32>
  %r = linalg.matmul ins(%a, %b: tensor<?x?xi8>, tensor<?x?xi8>) outs(%f: tensor<?x?xi32>) -> tensor<?x?xi32>
  return %r : tensor<?x?xi32>
}
func.func @tiles(%a: tensor<13x11xf32>, %b: tensor<11x9xf32>, %acc: tensor<13x9xf32>) -> tensor<13x9xf32> {
  %z = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<2x11x8x1xf32>
  %pa = linalg.pack %a padding_value(%z: f32) outer_dims_perm=[0,1] inner_dims_pos=[0,1] inner_tiles=[8,1] into %ea : tensor<13x11xf32> -> tensor<2x11x8x1xf32>
  %eb = tensor.empty() : tensor<3x11x4x1xf32>
  %pb = linalg.pack %b padding_value(%z: f32) outer_dims_perm=[1,0] inner_dims_pos=[1,0] inner_tiles=[4,1] into %eb : tensor<11x9xf32> -> tensor<3x11x4x1xf32>
  %ec = tensor.empty() : tensor<2x3x8x4xf32>
  %pc = linalg.pack %acc padding_value(%z: f32) outer_dims_perm=[0,1] inner_dims_pos=[0,1] inner_tiles=[8,4] into %ec : tensor<13x9xf32> -> tensor<2x3x8x4xf32>
  %m = linalg.mmt4d ins(%pa, %pb: tensor<2x11x8x1xf32>, tensor<3x11x4x1xf32>) outs(%pc: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  %eo = tensor.empty() : tensor<13x9xf32>
  %u = linalg.unpack %m outer_dims_perm=[0,1] inner_dims_pos=[0,1] inner_tiles=[8,4] into %eo : tensor<2x3x8x4xf32> -> tensor<13x9xf32>
  return %u : tensor<13x9xf32>
}
func.func @tiles_i8(%a: tensor<13x12xi8>, %b: tensor<9x12xi8>) -> tensor<13x9xi32> {
  %z = arith.constant 0 : i8
  %z32 = arith.constant 0 : i32
  %ea = tensor.empty() : tensor<2x6x8x2xi8>
  %pa = linalg.pack %a padding_value(%z: i8) outer_dims_perm=[0,1] inner_dims_pos=[0,1] inner_tiles=[8,2] into %ea : tensor<13x12xi8> -> tensor<2x6x8x2xi8>
  %eb = tensor.empty() : tensor<3x6x4x2xi8>
  %pb = linalg.pack %b padding_value(%z: i8) outer_dims_perm=[0,1] inner_dims_pos=[0,1] inner_tiles=[4,2] into %eb : tensor<9x12xi8> -> tensor<3x6x4x2xi8>
  %ec = tensor.empty() : tensor<2x3x8x4xi32>
  %f = linalg.fill ins(%z32: i32) outs(%ec: tensor<2x3x8x4xi32>) -> tensor<2x3x8x4xi32>
  %m = linalg.mmt4d ins(%pa, %pb: tensor<2x6x8x2xi8>, tensor<3x6x4x2xi8>) outs(%f: tensor<2x3x8x4xi32>) -> tensor<2x3x8x4xi32>
  %eo = tensor.empty() : tensor<13x9xi32>
  %u = linalg.unpack %m outer_dims_perm=[0,1] inner_dims_pos=[0,1] inner_tiles=[8,4] into %eo : tensor<2x3x8x4xi32> -> tensor<13x9xi32>
  return %u : tensor<13x9xi32>
}
