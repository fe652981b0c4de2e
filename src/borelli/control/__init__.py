"""Control of simulated bodies: targets, PD responses, tracking, perturbations, posing."""
