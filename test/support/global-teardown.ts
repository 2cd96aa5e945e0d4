import { existsSync, rmSync } from 'node:fs';
import type {} from './global-setup';

export default async function globalTeardown(): Promise<void> {
  const stack = globalThis.testStack;
  if (stack === undefined) return;
  for (const server of stack.servers) await server.stop();
  rmSync(stack.folder, { recursive: true, force: true });
  stack.watchdog.dismiss();
  if (existsSync('.data') && !stack.hasData) throw new Error('A test has written to `.data`.');
}
