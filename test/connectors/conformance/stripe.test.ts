import { type Answering, passOn, startProxy } from '../../../connectors/conformance/proxy';
import { defineStripe } from '../../../connectors/stripe/definition';
import { freePort } from '../../../stack/ports';
import { startFakeStripe } from '../stripe/fake';
import { KEY, WEBHOOK_SECRET } from '../stripe/world';
import { listBroken, openBench, PATIENT_WAIT_MS, startOnKit } from './setting';

const NO_MONEY = { amount: 0, currency: 'EUR' };

/** Promises about payouts. */
const OF_PAYOUTS = /^payout\./;

/** Desk of the bank, which opens disputes and shows what it was answered to them. */
function serveDesk(bank: Awaited<ReturnType<typeof startFakeStripe>>): Answering {
  const list = (object: string) =>
    [...bank.things.values()].filter((each) => each.object === object);
  const report = async (payment_id: string, name: string): Promise<boolean> => {
    const { payment_intent } = bank.findSession(payment_id);
    const charge = list('charge').find((each) => each['payment_intent'] === payment_intent);
    if (charge === undefined) return false;
    const made = list('dispute').find((each) => each['charge'] === charge.id);
    if (name === 'dispute_opened') await bank.dispute(charge);
    else if (made !== undefined && name === 'dispute_withdrawn') await bank.withdraw(made);
    else if (made !== undefined && name === 'dispute_reinstated') await bank.reinstate(made);
    // The opening itself says the status.
    else return made !== undefined && name === 'dispute_updated';
    return true;
  };
  /** Counts the keys under which Stripe has taken it. */
  const countAnswers = (id: string): number => {
    const taken = bank.requests.filter(({ answer }) => answer?.status === 200);
    const keys = taken.map(({ headers }) => headers['idempotency-key'] ?? '');
    return new Set(keys.filter((key) => key.startsWith(id))).size;
  };
  const answer = (status: number, body: object) => ({
    ...{ status, headers: { 'Content-Type': 'application/json' } },
    body: Buffer.from(JSON.stringify(body)),
  });
  return async (request) => {
    const id = decodeURIComponent(request.path.split('/').at(-1) ?? '');
    if (request.method === 'GET' && /^(evidence|acceptance):/.test(id)) {
      const effects = Array.from({ length: countAnswers(id) }, () => NO_MONEY);
      return answer(200, { effects });
    }
    const { name = '', resource_id } = JSON.parse(request.body.toString() || '{}');
    if (!name.startsWith('dispute_')) return await passOn(bank.url, request);
    return answer((await report(resource_id, name)) ? 200 : 404, {});
  };
}

test('the connector of Stripe keeps every promise of a connector that pays nobody', async () => {
  const bench = await openBench('stripe', PATIENT_WAIT_MS);
  const [bankPort, webhookPort] = [await freePort(), await freePort()];
  const webhook = { url: `http://127.0.0.1:${webhookPort}/webhooks`, secret: WEBHOOK_SECRET };
  const bank = await startFakeStripe({ key: KEY, webhook });
  bank.openCheck();
  const desk = await startProxy(0, serveDesk(bank));
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
        ...{ deskUrl: `${desk.url}/desk`, bankUrl: bank.url, bankPort },
        ...{ webhookUrl: String(connector.url).replace('/webhooks', ''), webhookPort },
      },
      ['ideal'],
    );
    expect(listBroken(report)).toEqual([]);
    const missing = report.promises.filter(({ result }) => result === 'not_applicable');
    expect(missing.filter(({ id }) => !OF_PAYOUTS.test(id))).toEqual([]);
  } finally {
    await connector.stop();
    await desk.stop();
    await bank.stop();
    await bench.stop();
  }
});
