import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readCpu } from '../../../bench/measure/process';

/** Elsewhere there is no /proc, and the benchmark measures no processor time. */
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('the time of a named child is not counted again for its parent', async () => {
  const script =
    'while (process.cpuUsage().user < 300_000); console.log("done"); setInterval(() => {}, 1e6)';
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  try {
    await once(child.stdout, 'data');
    const alone = readCpu({ own: process.pid })['own'] ?? 0;
    const both = readCpu({ own: process.pid, child: child.pid ?? 0 });
    expect(both['child']).toBeGreaterThanOrEqual(200);
    expect(alone - (both['own'] ?? 0)).toBeGreaterThanOrEqual(150);
  } finally {
    child.kill();
    await ended;
  }
});
