// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Private pools and memory without tensors, on the driver of tests/fake-cuda.

import GTorch from 'gi://GTorch?version=1';
import * as tap from './tap.js';

const gpu = GTorch.Device.cuda(0);

tap.add('guards_send_memory_to_a_pool', () => {
    const pool = GTorch.MemoryPool.new(gpu);
    const guard = GTorch.MemoryPoolGuard.new(pool);
    const inside = GTorch.zeros([1000], {device: gpu});
    guard.end();
    const outside = GTorch.zeros([1000], {device: gpu});
    tap.equal(pool.allocated, 4096);
    tap.equal(pool.get_device() === gpu, true);
    tap.equal(inside.sum().item() + outside.sum().item(), 0);
});

tap.add('a_function_runs_in_a_pool', () => {
    const pool = new GTorch.MemoryPool({device: gpu});
    const done = pool.run(given => {
        tap.equal(given === pool, true);
        GTorch.zeros([1000], {device: gpu});
        return true;
    });
    tap.equal(done, true);
    tap.equal(pool.peak_allocated, 4096);
});

tap.add('memory_without_a_tensor', () => {
    const allocator = gpu.get_allocator();
    const before = allocator.allocated;
    const block = allocator.alloc(5000, null);
    tap.equal([block.size, block.address > 0, allocator.allocated - before], [5000, true, 5120]);
    block.release();
    tap.equal([block.address, allocator.allocated - before], [0, 0]);
    tap.throws(() => allocator.alloc(2 ** 50, null), error =>
        error.matches(GTorch.Error, GTorch.Error.OUT_OF_MEMORY));
});

tap.add('sources_of_libraries_can_be_missing', () => {
    tap.throws(() => GTorch.MemorySource.load('libnowhere.so', 'a', 'b'), error =>
        error.matches(GTorch.Error, GTorch.Error.NOT_FOUND));
});

await tap.run();
