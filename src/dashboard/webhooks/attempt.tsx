import type { DeliveryDocument } from '../../store/deliveries';
import { Facts, When } from '../parts';
import { Status } from '../status';

/** Attempt with its request and the receiver's answer. */
export function AttemptFacts({ row }: { row: DeliveryDocument }) {
  const { outcome, at, url, status_code, error, duration_ms, response_excerpt } = row;
  return (
    <>
      <Facts
        rows={[
          ['Outcome', <Status key="outcome" of={outcome} />],
          ['At', <When key="at" at={at} />],
          ['URL', <code key="url">{url}</code>],
          ['Answer', status_code === null ? (error ?? 'None') : `HTTP ${status_code}`],
          ['Took', `${duration_ms} ms`],
        ]}
      />
      {response_excerpt !== '' && (
        <details>
          <summary>Body of the answer</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
          <pre class="wrap" tabIndex={0}>
            {response_excerpt}
          </pre>
        </details>
      )}
    </>
  );
}
