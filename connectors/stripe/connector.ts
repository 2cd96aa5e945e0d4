import type { RunConfig } from '../kit/connector';
import { startConnector } from '../kit/connector';
import type { ConnectorProcess } from '../kit/process';
import type { Parts } from './api';
import { createBook } from './book';
import { defineStripe } from './definition';
import { assertKeyMode, type StripeSettings } from './settings';

interface Changes {
  pollSeconds?: number;
}

/** @throws Error for a key of the other mode */
export async function startStripe(
  config: RunConfig<StripeSettings>,
  own: ConnectorProcess,
  { pollSeconds }: Changes = {},
) {
  const { environment, name, MONGODB_DB } = config;
  assertKeyMode(config.settings.STRIPE_SECRET_KEY_FILE, environment);
  const book = createBook(own.mongo.db(`${MONGODB_DB}_${name}`), own.now);
  await book.ensureIndexes();
  const parts: Parts = { book, livemode: environment === 'live', pause: { until: 0 } };
  const { poll, ...definition } = defineStripe(() => parts);
  const seconds = pollSeconds ?? poll?.seconds ?? 0;
  return await startConnector(
    { ...definition, ...(poll && { poll: { ...poll, seconds } }) },
    config,
    own,
  );
}
