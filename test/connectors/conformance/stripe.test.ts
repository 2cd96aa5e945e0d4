import { defineStripe } from '../../../connectors/stripe/definition';
import { freePort } from '../../../stack/ports';
import { startFakeStripe } from '../stripe/fake';
import { KEY, WEBHOOK_SECRET } from '../stripe/world';
import { listBroken, openBench, PATIENT_WAIT_MS, startOnKit } from './setting';

/** Promises about payouts. */
const OF_PAYOUTS = /^payout\./;

test('the connector of Stripe keeps every promise of a connector that pays nobody', async () => {
  const bench = await openBench('stripe', PATIENT_WAIT_MS);
  const [bankPort, webhookPort] = [await freePort(), await freePort()];
  const webhook = { url: `http://127.0.0.1:${webhookPort}/webhooks`, secret: WEBHOOK_SECRET };
  const bank = await startFakeStripe({ key: KEY, webhook });
  bank.openCheck();
  const { poll, ...definition } = defineStripe();
  const quick = { ...definition, ...(poll && { poll: { ...poll, seconds: 0.2 } }) };
  const connector = await startOnKit(
    { ...quick, limits: { perSecond: 200, atOnce: 50 } },
    {
      ...bench,
      settings: {
        ...{ STRIPE_API_URL: `http://127.0.0.1:${bankPort}`, STRIPE_SECRET_KEY_FILE: KEY },
        ...{ STRIPE_WEBHOOK_SECRET_FILE: WEBHOOK_SECRET, STRIPE_CURRENCIES: ['EUR'] },
      },
    },
  );
  try {
    const report = await bench.check(
      {
        ...{ deskUrl: `${bank.url}/desk`, bankUrl: bank.url, bankPort },
        ...{ webhookUrl: String(connector.url).replace('/webhooks', ''), webhookPort },
      },
      ['ideal'],
    );
    expect(listBroken(report)).toEqual([]);
    const missing = report.promises.filter(({ result }) => result === 'not_applicable');
    expect(missing.filter(({ id }) => !OF_PAYOUTS.test(id))).toEqual([]);
  } finally {
    await connector.stop();
    await bank.stop();
    await bench.stop();
  }
});
