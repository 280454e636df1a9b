"use strict";
// How numbers are written. They arrive rounded as they are shown.

const COMMAS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 20 });

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact" });

/** Cents; without them from a thousand dollars on. */
function money(cents) {
  if (Math.abs(cents) >= 100000) return `$${COMMAS.format(Math.round(cents / 100))}`;
  return `$${(cents / 100).toFixed(2)}`;
}

/** A number with the given significant digits, and zeros that count. */
function significant(number, digits) {
  if (number === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(number)) + 1e-9) + 1;
  return whole >= digits ? COMMAS.format(number) : number.toFixed(Math.min(digits - whole, 6));
}

const hours = (number) => significant(number, 3);
/** The end of a band: two digits, or cents. */
const dollars = (usd) => `$${usd >= 10 ? COMMAS.format(usd) : usd.toFixed(2)}`;
const between = (low, high) => `${dollars(low)} to ${dollars(high)}`;
const rate = (usd) => `$${usd < 1 ? usd.toFixed(3) : COMMAS.format(Number(usd.toFixed(2))).replace(/^(\d+)$/, "$1.00").replace(/\.(\d)$/, ".$10")}`;
/** What CPU and memory cost besides the price, where they do. */
const hostText = (usd) => (usd > 0 ? ` + ${usd < 0.1 ? rate(usd) : `$${usd.toFixed(2)}`} host` : "");
/** A label within a sentence. */
const inSentence = (label) => label.charAt(0).toLowerCase() + label.slice(1);
const words = (name) => name.replaceAll("_", " ");
const kindWords = (kind) => kind.replaceAll("_", "-");

/** A probability in tenths of a percent; 995 is over 99%, 5 under 1%. */
function percent(tenths) {
  return tenths === 995 ? "over 99%" : tenths === 5 ? "under 1%" : `${tenths / 10}%`;
}

const share = (number) => (number === null ? "" : `${(100 * number).toFixed(0)}%`);
const signed = (number) => (number === null ? "" : Math.abs(number) < 0.005 ? "0%" : `${number < 0 ? "\u2212" : "+"}${Math.abs(100 * number).toFixed(0)}%`);

const DAY = 86400000;

/** Days from a day (2026-08-22) to today, by the clock of who reads this, in UTC. */
function ageDays(day) {
  return day === null ? null : Math.floor(Date.now() / DAY) - Math.floor(Date.parse(`${day}T00:00:00Z`) / DAY);
}

function ageText(days) {
  if (days < 0) return "after today";
  return days === 0 ? "today" : days === 1 ? "1 day" : `${COMMAS.format(days)} days`;
}

const plural = (count, noun) => `${COMMAS.format(count)} ${noun}${count === 1 ? "" : "s"}`;

function tokensText(tokens) {
  for (const [size, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"]]) if (tokens >= size) return `${COMMAS.format(tokens / size)}${unit}`;
  return COMMAS.format(tokens);
}
