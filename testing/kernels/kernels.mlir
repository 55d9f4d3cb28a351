// The kernels of the device suite for processors: those of the .comp files beside this, except bias.
#affine_layout = #hal.pipeline.layout<constants = 2, bindings = [
  #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>
#ids_layout = #hal.pipeline.layout<constants = 0, bindings = [#hal.pipeline.binding<storage_buffer>]>
#mix_layout = #hal.pipeline.layout<constants = 4, bindings = [
  #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer, ReadOnly>,
  #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>

hal.executable.source public @conformance {
  hal.executable.export public @affine ordinal(0) layout(#affine_layout)
      count(%device: !hal.device, %x: index, %y: index, %z: index) -> (index, index, index) {
    hal.return %x, %y, %z : index, index, index
  }
  hal.executable.export public @ids ordinal(1) layout(#ids_layout)
      count(%device: !hal.device, %x: index, %y: index, %z: index) -> (index, index, index) {
    hal.return %x, %y, %z : index, index, index
  }
  hal.executable.export public @mix ordinal(2) layout(#mix_layout)
      count(%device: !hal.device, %x: index, %y: index, %z: index) -> (index, index, index) {
    hal.return %x, %y, %z : index, index, index
  }
  builtin.module {
    func.func @affine() {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %two = arith.constant 2 : i32
      %count_i32 = hal.interface.constant.load layout(#affine_layout) ordinal(0) : i32
      %add = hal.interface.constant.load layout(#affine_layout) ordinal(1) : i32
      %count = arith.index_castui %count_i32 : i32 to index
      %source = hal.interface.binding.subspan layout(#affine_layout) binding(0) offset(%c0) : memref<?xi32>{%count}
      %target = hal.interface.binding.subspan layout(#affine_layout) binding(1) offset(%c0) : memref<?xi32>{%count}
      %id = hal.interface.workgroup.id[0] : index
      %begin = arith.muli %id, %c64 : index
      %limit = arith.addi %begin, %c64 : index
      %end = arith.minui %limit, %count : index
      scf.for %i = %begin to %end step %c1 {
        %x = memref.load %source[%i] : memref<?xi32>
        %d = arith.muli %x, %two : i32
        %y = arith.addi %d, %add : i32
        memref.store %y, %target[%i] : memref<?xi32>
      }
      return
    }
    func.func @ids() {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %one = arith.constant 1 : i32
      %b4 = arith.constant 4 : i32
      %b8 = arith.constant 8 : i32
      %b12 = arith.constant 12 : i32
      %b16 = arith.constant 16 : i32
      %b20 = arith.constant 20 : i32
      %target = hal.interface.binding.subspan layout(#ids_layout) binding(0) offset(%c0) : memref<64xi32>
      %x = hal.interface.workgroup.id[0] : index
      %y = hal.interface.workgroup.id[1] : index
      %z = hal.interface.workgroup.id[2] : index
      %nx = hal.interface.workgroup.count[0] : index
      %ny = hal.interface.workgroup.count[1] : index
      %nz = hal.interface.workgroup.count[2] : index
      %z4 = arith.muli %z, %c4 : index
      %yz = arith.addi %z4, %y : index
      %yz4 = arith.muli %yz, %c4 : index
      %at = arith.addi %yz4, %x : index
      %xi = arith.index_castui %x : index to i32
      %yi = arith.index_castui %y : index to i32
      %zi = arith.index_castui %z : index to i32
      %nxi = arith.index_castui %nx : index to i32
      %nyi = arith.index_castui %ny : index to i32
      %nzi = arith.index_castui %nz : index to i32
      %x1 = arith.addi %xi, %one : i32
      %y1 = arith.addi %yi, %one : i32
      %z1 = arith.addi %zi, %one : i32
      %ys = arith.shli %y1, %b4 : i32
      %zs = arith.shli %z1, %b8 : i32
      %nxs = arith.shli %nxi, %b12 : i32
      %nys = arith.shli %nyi, %b16 : i32
      %nzs = arith.shli %nzi, %b20 : i32
      %w0 = arith.ori %x1, %ys : i32
      %w1 = arith.ori %w0, %zs : i32
      %w2 = arith.ori %w1, %nxs : i32
      %w3 = arith.ori %w2, %nys : i32
      %w4 = arith.ori %w3, %nzs : i32
      memref.store %w4, %target[%at] : memref<64xi32>
      return
    }
    func.func @mix() {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %ka = hal.interface.constant.load layout(#mix_layout) ordinal(0) : i32
      %kb = hal.interface.constant.load layout(#mix_layout) ordinal(1) : i32
      %kc = hal.interface.constant.load layout(#mix_layout) ordinal(2) : i32
      %count_i32 = hal.interface.constant.load layout(#mix_layout) ordinal(3) : i32
      %count = arith.index_castui %count_i32 : i32 to index
      %a = hal.interface.binding.subspan layout(#mix_layout) binding(0) offset(%c0) : memref<?xi32>{%count}
      %b = hal.interface.binding.subspan layout(#mix_layout) binding(1) offset(%c0) : memref<?xi32>{%count}
      %c = hal.interface.binding.subspan layout(#mix_layout) binding(2) offset(%c0) : memref<?xi32>{%count}
      %target = hal.interface.binding.subspan layout(#mix_layout) binding(3) offset(%c0) : memref<?xi32>{%count}
      %id = hal.interface.workgroup.id[0] : index
      %begin = arith.muli %id, %c64 : index
      %limit = arith.addi %begin, %c64 : index
      %end = arith.minui %limit, %count : index
      scf.for %i = %begin to %end step %c1 {
        %av = memref.load %a[%i] : memref<?xi32>
        %bv = memref.load %b[%i] : memref<?xi32>
        %cv = memref.load %c[%i] : memref<?xi32>
        %am = arith.muli %av, %ka : i32
        %bm = arith.muli %bv, %kb : i32
        %cm = arith.muli %cv, %kc : i32
        %ab = arith.addi %am, %bm : i32
        %abc = arith.addi %ab, %cm : i32
        memref.store %abc, %target[%i] : memref<?xi32>
      }
      return
    }
  }
}
