// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

const none = (value) => value === null || value === undefined || Number.isNaN(value);

export const number = (value) =>
  none(value) ? "–" : Math.abs(value) >= 1000 ? whole.format(value) : short.format(value);

export const compactNumber = (value) => (none(value) ? "–" : compact.format(value));

export const percent = (share) =>
  none(share) ? "–" : share > 0 && share < 0.001 ? "< 0.1 %" : `${short.format(100 * share)} %`;

export function seconds(value) {
  if (none(value)) return "–";
  if (value < 1) return `${whole.format(1000 * value)} ms`;
  if (value < 120) return `${short.format(value)} s`;
  return value < 7200 ? `${whole.format(value / 60)} min` : `${short.format(value / 3600)} h`;
}

/** A time of today as a clock shows it, any other with its date. */
export function moment(rfc3339) {
  if (!rfc3339) return "–";
  const time = new Date(rfc3339);
  const today = time.toDateString() === new Date().toDateString();
  return today ? time.toLocaleTimeString() : time.toLocaleString();
}
