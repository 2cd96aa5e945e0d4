import { readStatementFile } from '../../src/statements/read';

/** Reads a file in a process of its own, and prints what that took: bytes above idle, and ms. */
async function main(path: string): Promise<void> {
  const idle = process.memoryUsage().rss;
  let [peak, pause, seen] = [idle, 0, performance.now()];
  const measure = () => {
    pause = Math.max(pause, performance.now() - seen);
    seen = performance.now();
    peak = Math.max(peak, process.memoryUsage().rss);
  };
  const timer = setInterval(measure, 10);
  const outcome = await readStatementFile(path).then(
    ({ statements }) => `${statements.flatMap(({ lines }) => lines).length} lines`,
    (error: unknown) => String(error),
  );
  measure();
  clearInterval(timer);
  process.stdout.write(JSON.stringify({ outcome, pause, memory: peak - idle }));
}

void main(process.argv[2] ?? '');
