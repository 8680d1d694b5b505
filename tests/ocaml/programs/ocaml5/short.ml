(* Many domains that allocate little each: OCaml 5.3 seeds its sampler with the number of the
   domain's slot, so each sees the same few gaps, and at low rates nothing is ever sampled. *)

let rec burn n acc = if n = 0 then acc else burn (n - 1) (n :: acc)

let () =
  let words = ref 0. in
  for _ = 1 to 300 do
    let d =
      Domain.spawn (fun () ->
          let before = Gc.minor_words () in
          ignore (Sys.opaque_identity (burn 1_000 []));
          Gc.minor_words () -. before)
    in
    words := !words +. Domain.join d
  done;
  Printf.eprintf "truth: words %.0f\n" !words;
  print_endline "300 domains"
