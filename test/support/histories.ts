import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';

const ROOT = join(__dirname, '../..');
const HISTORIES = join(ROOT, 'test/replay/histories');

/** Kept for the replay test, only when asked; one that is in the tree stays as it is. */
export async function saveHistory(handle: WorkflowHandle, name: string): Promise<void> {
  if (process.env['RECORD_HISTORIES'] === undefined) return;
  mkdirSync(HISTORIES, { recursive: true });
  const file = join(HISTORIES, `${name}.json`);
  if (existsSync(file)) return;
  // Stack traces name the folder they were made in.
  const history = historyToJSON(await handle.fetchHistory()).replaceAll(`${ROOT}/`, '');
  writeFileSync(file, history, { flag: 'wx' });
}

/** Workflow as Temporal stores it: its type, its input, and the text of every payload. */
export async function readPayloads({ workflow }: Client, workflowId: string) {
  const history = await workflow.getHandle(workflowId).fetchHistory();
  const started = history.events?.[0]?.workflowExecutionStartedEventAttributes;
  const payloads = historyToJSON(history).match(/"data": ?"[^"]+"/g) ?? [];
  const texts = payloads.map((each) => Buffer.from(each.split('"')[3] ?? '', 'base64').toString());
  return {
    type: started?.workflowType?.name,
    input: JSON.parse(String(started?.input?.payloads?.[0]?.data)),
    text: texts.join('\n'),
  };
}
