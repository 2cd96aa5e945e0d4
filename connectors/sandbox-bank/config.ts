import { z } from 'zod';
import { TASK_QUEUE_PREFIX } from '../../src/domain/task-queues';

/** Environment of the sandbox bank's process. */
export const Environment = z.object({
  SANDBOX_BANK_PORT: z.coerce.number().int().min(0).max(65535).default(8081),
  HOST: z.string().default('127.0.0.1'),
  /** Public base of its pages. */
  SANDBOX_BANK_URL: z.url().optional(),
  /** Whether settlements and completions follow by themselves. */
  SANDBOX_AUTOPLAY: z.enum(['on', 'off']).default('on'),
  MONGODB_URI: z.string().min(1),
  MONGODB_DB: z.string().default('payments'),
  TEMPORAL_ADDRESS: z.string().default('127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: z.string().default('default'),
  /** The service's, whose queues this bank works on. */
  TASK_QUEUE_PREFIX: z.string().regex(TASK_QUEUE_PREFIX).default(''),
  /** The service's key file: recipients come to a bank sealed. */
  KEYS_FILE: z.string().min(1),
  LOG_LEVEL: z.string().default('info'),
});

export type SandboxBankConfig = z.infer<typeof Environment>;

/** @throws Error naming every variable at fault. */
export function readSandboxBankConfig(env: NodeJS.ProcessEnv = process.env): SandboxBankConfig {
  const parsed = Environment.safeParse(env);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`The environment is not usable.\n  ${faults.join('\n  ')}`);
}
