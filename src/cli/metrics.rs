//! `--metrics`: takes the port before anything is sent or written, and says where the figures are.

use anyhow::anyhow;

use super::values::MetricsAddress;
use crate::report::Metrics;

/// Serves figures from now on, if asked to.
///
/// # Errors
/// The address is not this machine's or the port is taken.
pub(super) async fn serve(address: Option<MetricsAddress>) -> anyhow::Result<Option<Metrics>> {
    let Some(MetricsAddress(address)) = address else {
        return Ok(None);
    };
    let metrics = Metrics::serve(address).await;
    let metrics = metrics
        .map_err(|error| anyhow!("{error:#}\nhint: choose another port, or 0 for any free one"))?;
    let address = metrics.address();
    if !address.ip().is_loopback() {
        tracing::warn!("--metrics: whoever reaches {address} can read the figures");
    }
    tracing::info!("figures for Prometheus: http://{address}/metrics");
    Ok(Some(metrics))
}
