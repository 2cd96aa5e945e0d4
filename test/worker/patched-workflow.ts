import { condition, defineQuery, defineSignal, patched, setHandler } from '@temporalio/workflow';

const step = defineSignal('step');
const taken = defineQuery<string[]>('taken');

/** Takes three steps, each when it is signalled, by the old behavior or by the new one. */
export async function changing(): Promise<string[]> {
  const branches: string[] = [];
  let requested = 0;
  setHandler(step, () => {
    requested += 1;
  });
  setHandler(taken, () => branches);
  while (branches.length < 3) {
    await condition(() => requested > branches.length);
    branches.push(patched('new-behavior') ? 'new' : 'old');
  }
  return branches;
}
