import { z } from 'zod';

const Environment = z.object({
  FLOOR_PORT: z.coerce.number().int().min(1).max(65535),
  FLOOR_RECEIVER_URL: z.url(),
  FLOOR_DB: z.string().min(1),
  MONGODB_URI: z.string().min(1),
});

export type FloorConfig = z.infer<typeof Environment>;

export function readFloorConfig(env: NodeJS.ProcessEnv = process.env): FloorConfig {
  return Environment.parse(env);
}
