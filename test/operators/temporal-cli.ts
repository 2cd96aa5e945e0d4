import { spawn } from 'node:child_process';
import { cacheDirectory, provision } from '../../stack/provision/provision';
import { temporalCli } from '../../stack/provision/temporal';
import { showProgress } from '../../stack/terminal';

const COMMAND_MS_MAX = 60_000;

/** How one command ended, and what it wrote. */
interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface OperatorAct {
  operator?: string;
  reason?: string;
  hours?: number;
}

export type TemporalCli = Awaited<ReturnType<typeof openTemporalCli>>;

/** Opens the real `temporal` command line. @param address host:port of the server */
export async function openTemporalCli(address: string) {
  const { path } = await provision(temporalCli, {
    ...{ cacheDir: cacheDirectory(process.env), env: process.env },
    ...{ progress: showProgress(process.stderr), signal: new AbortController().signal },
  });
  const run = (...args: string[]) => runTool(path, [...args, '--address', address]);
  const must = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(...args);
    if (code !== 0) throw new Error(`temporal ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  return {
    run,
    /** Workflow ids that a visibility query gives. */
    find: async (query: string): Promise<string[]> => {
      type Listed = { execution: { workflowId: string } };
      const listed: Listed[] = JSON.parse(
        await must('workflow', 'list', '--query', query, '-o', 'json'),
      );
      return listed.map(({ execution }) => execution.workflowId);
    },
    /** Runs `temporal workflow update execute`, however it ends. */
    update: (workflowId: string, name: string, act: OperatorAct) =>
      run(
        ...['workflow', 'update', 'execute', '--workflow-id', workflowId, '--name', name],
        ...['--input', JSON.stringify(act), '-o', 'json'],
      ),
    /** Current details, as `temporal workflow metadata` prints them. */
    details: async (workflowId: string): Promise<string> => {
      const metadata = await must('workflow', 'metadata', '--workflow-id', workflowId);
      return metadata.slice(metadata.indexOf('Current Details:'));
    },
  };
}

/** Without the developer's own settings of the tool. */
async function runTool(path: string, args: readonly string[]): Promise<Ran> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_'));
  const child = spawn(path, args, {
    env: Object.fromEntries(own),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: COMMAND_MS_MAX,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
