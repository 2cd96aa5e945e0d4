import { z } from 'zod';

/** Variables in `DATA_DIR/stack.json`, which the launcher writes and the command line reads. */
export const StackSettings = z.object({
  MONGODB_DB: z.string(),
  TASK_QUEUE_PREFIX: z.string(),
  KEYS_FILE: z.string(),
  KEYS_DIR: z.string(),
  WEBHOOK_ALLOW_PRIVATE: z.string(),
  PUBLIC_URL: z.string(),
  LIVE_CONNECTORS: z.string(),
  SANDBOX_CONNECTORS: z.string(),
  SEPA_IN_DIR: z.string(),
  SEPA_IBAN: z.string(),
});
