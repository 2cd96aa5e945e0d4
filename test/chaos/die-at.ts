import { Collection } from 'mongodb';

/**
 * Loaded into a process before its own code: it dies at the step that `DIE_AT` names, as a list of
 * `before` or `after`, a call of MongoDB's driver or of HTTP, and texts of its arguments.
 */
const [when = '', call = '', ...texts]: string[] = JSON.parse(process.env['DIE_AT'] ?? '[]');

async function dieIf(point: string, name: string, text: string): Promise<void> {
  if (point !== when || name !== call || !texts.every((each) => text.includes(each))) return;
  process.kill(process.pid, 'SIGKILL');
  await new Promise<never>(() => {});
}

function watch(on: object, method: string, describe: (on: unknown, args: unknown[]) => string) {
  const original: (...args: unknown[]) => Promise<unknown> = Reflect.get(on, method);
  const watched = async function (this: unknown, ...args: unknown[]) {
    const [name, text] = [describe(this, args), JSON.stringify(args.slice(0, 2))];
    await dieIf('before', name, text);
    const result = await original.apply(this, args);
    await dieIf('after', name, text);
    return result;
  };
  Reflect.set(on, method, watched);
}

for (const method of ['insertOne', 'updateOne', 'findOneAndUpdate']) {
  watch(Collection.prototype, method, (on) =>
    on instanceof Collection ? `${method} ${on.collectionName}` : method,
  );
}
watch(globalThis, 'fetch', (_on, [url, init]) => {
  const { method = 'GET' } = Object(init);
  return `${method} ${new URL(String(url)).pathname}`;
});
